// scaled_dot_product_attention: PyTorch's own asks a table of kernels that has no
// place for xpu.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include "alias.h"

namespace xpurt {
namespace {

using at::Tensor;

// A mask of what takes part, as one that is added.
std::optional<Tensor> additive(const std::optional<Tensor>& mask,
                               at::ScalarType dtype) {
  if (!mask.has_value() || !mask->defined() || mask->scalar_type() != at::kBool) {
    return mask;
  }
  Tensor added = at::zeros_like(*mask, mask->options().dtype(dtype));
  added.masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  return added;
}

// Whether the CPU would take its fused kernel. On a device whose memory the host
// cannot read the composite form is better: its parts have kernels there. Of tensors
// without memory, as a compiler traces with, PyTorch cannot say: it asks that table.
bool takes_fused(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& mask, double dropout, bool causal,
                 std::optional<double> scale, bool grouped) {
  if (!query.is_xpu() || query.is_nested() ||
      query.key_set().has(c10::DispatchKey::Python) ||
      !host_reads(query.device().index())) {
    return false;
  }
  if (mask.has_value() && mask->requires_grad() && at::GradMode::is_enabled()) {
    return false;
  }
  constexpr int64_t kFlash = 1;  // of at::SDPBackend
  return at::_fused_sdp_choice(query, key, value, mask, dropout, causal, scale,
                               grouped) == kFlash;
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& mask, double dropout, bool causal,
                 std::optional<double> scale, bool grouped) {
  const std::optional<Tensor> added = additive(mask, query.scalar_type());
  if (takes_fused(query, key, value, added, dropout, causal, scale, grouped)) {
    return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        query, key, value, dropout, causal, added, scale));
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, added, dropout, causal, std::nullopt, scale, grouped));
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
}
TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
}

}  // namespace
}  // namespace xpurt
