// Attention by products of panels, which panels/ has as an op.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cpu/Utils.h>

#include "lanes/kernels.h"
#include "op/row_kernel.h"
#include "rows/attention.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr int64_t kFewestQueries = 32;
constexpr int64_t kFewestOfGradients = 64;  // in float32

template <typename Function>
c10::TypedOperatorHandle<Function> found(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

std::optional<Tensor> mask_of(const Attention& attention) {
  return attention.mask.defined() ? std::optional(attention.mask.to(at::kFloat))
                                  : std::nullopt;
}

// Tiles of bfloat16 take less time than panels of floats.
bool has_tiles() {
  static const bool found = [] {
    const auto known = at::cpu::get_cpu_capabilities();
    const auto tiles = known.find("amx_bf16");
    return tiles != known.end() && tiles->second.toBool();
  }();
  return found;
}

bool is_type_of_panels(at::ScalarType type) {
  return type == at::kFloat || (type == at::kBFloat16 && !has_tiles());
}

}  // namespace

// PyTorch's product of one query in bfloat16 takes 2.4 to 2.9 times as long as panels.
bool attention_fits_panels(const Attention& attention, bool backward,
                           const PhysicalDevice& device) {
  static const bool has_vectors = lane_kernels() != nullptr;
  const bool is_float = attention.query.scalar_type() == at::kFloat;
  return has_vectors && device.is_cpu && device.host_accessible &&
         kernel_policy() == KernelPolicy::automatic &&
         is_type_of_panels(attention.query.scalar_type()) &&
         (attention.queries() >=
              (backward && is_float ? kFewestOfGradients : kFewestQueries) ||
          (!backward && !is_float && attention.queries() == 1));
}

Attended attend_by_panels(const Attention& attention) {
  using Op = std::tuple<Tensor, Tensor>(const Tensor&, const Tensor&, const Tensor&,
                                        const std::optional<Tensor>&, bool, double);
  static const auto op = found<Op>("xpurt::panel_attention");
  auto [out, sums] = op.call(attention.query, attention.key, attention.value,
                             mask_of(attention), attention.causal, attention.scale);
  return {out, sums};
}

AttentionGradients attend_backward_by_panels(const Attention& attention,
                                             const AttentionBackward& backward) {
  using Op = std::tuple<Tensor, Tensor, Tensor>(
      const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
      const Tensor&, const std::optional<Tensor>&, bool, double);
  static const auto op = found<Op>("xpurt::panel_attention_backward");
  auto [query, key, value] = op.call(
      backward.grad, attention.query, attention.key, attention.value, backward.out,
      backward.sums, mask_of(attention), attention.causal, attention.scale);
  return {query, key, value};
}

}  // namespace xpurt
