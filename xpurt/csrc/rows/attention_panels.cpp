// Attention by products of panels, which panels/ has as an op.
#include <ATen/Version.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "op/row_kernel.h"
#include "rows/attention.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr int64_t kFewestQueries = 32;

}  // namespace

bool attention_fits_panels(const Attention& attention, const PhysicalDevice& device) {
  static const bool is_avx2 = at::get_cpu_capability() == "AVX2";
  return is_avx2 && device.is_cpu && device.host_accessible &&
         kernel_policy() == KernelPolicy::automatic &&
         attention.query.scalar_type() == at::kFloat &&
         attention.queries() >= kFewestQueries;
}

Attended attend_by_panels(const Attention& attention) {
  using Op = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                        const std::optional<Tensor>&, bool, double);
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("xpurt::panel_attention", "")
                             .typed<Op>();
  const std::optional<Tensor> mask =
      attention.mask.defined() ? std::optional(attention.mask) : std::nullopt;
  auto [out, sums] = op.call(attention.query, attention.key, attention.value, mask,
                             attention.causal, attention.scale);
  return {out, sums};
}

}  // namespace xpurt
