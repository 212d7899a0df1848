// The ops xpurt::panel_attention and xpurt::panel_attention_backward.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "panels/attention.h"
#include "panels/attention_gradients.h"
#include "panels/lane_op.h"

namespace xpurt {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr LaneOp kAttention{"xpurt::panel_attention",
                            "torch.nn.functional.scaled_dot_product_attention"};
constexpr LaneOp kBackward{"xpurt::panel_attention_backward", kAttention.instead};

TokenRows<const float> floats_of(const Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.stride(0), tensor.stride(1),
          tensor.stride(2)};
}

TokenRows<float> written_floats_of(const Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), tensor.stride(0), tensor.stride(1),
          tensor.stride(2)};
}

StoredRows<const void> rows_of(const Tensor& tensor) {
  return {tensor.const_data_ptr(), tensor.stride(0), tensor.stride(1), tensor.stride(2),
          tensor.scalar_type() == at::kBFloat16};
}

StoredRows<void> written_rows_of(const Tensor& tensor) {
  return {tensor.mutable_data_ptr(), tensor.stride(0), tensor.stride(1),
          tensor.stride(2), tensor.scalar_type() == at::kBFloat16};
}

// With adjacent values in a row.
Tensor rows_with_adjacent_values(const Tensor& tensor) {
  return tensor.size(3) == 1 || tensor.stride(3) == 1 ? tensor : tensor.contiguous();
}

// (batch, tokens, heads, ...) in memory, as PyTorch's kernel makes sums and gradients.
Tensor gradients_like(const Tensor& like) {
  return at::empty({like.size(0), like.size(2), like.size(1), like.size(3)},
                   like.options())
      .transpose(1, 2);
}

Tensor sums_like(const Tensor& query) {
  return at::empty({query.size(0), query.size(2), query.size(1)},
                   query.options().dtype(at::kFloat))
      .transpose(1, 2);
}

// The operands of both ops, as the loops want them.
struct Operands {
  Operands(const LaneOp& op, const Tensor& given_query, const Tensor& given_key,
           const Tensor& given_value, const MaybeTensor& given_mask, bool causal,
           double scale) {
    TORCH_CHECK_VALUE(
        given_query.dim() == 4 && given_key.dim() == 4 && given_key.size(2) > 0,
        op.name, " wants queries and keys (batch, heads, tokens, size); found ",
        given_query.sizes(), " and ", given_key.sizes());
    const int64_t batches = given_query.size(0), heads = given_query.size(1);
    const int64_t queries = given_query.size(2), keys = given_key.size(2);
    const int64_t size = given_query.size(3);
    const at::ScalarType type = given_query.scalar_type();
    if (type != at::kBFloat16) op.check_type("queries", given_query);
    op.check("keys", given_key, {batches, heads, keys, size}, type);
    op.check("values", given_value, {batches, heads, keys, size}, type);
    query = rows_with_adjacent_values(given_query);
    key = rows_with_adjacent_values(given_key);
    value = rows_with_adjacent_values(given_value);
    call = {
        batches,      heads,          queries, keys, size,   rows_of(query),
        rows_of(key), rows_of(value), {},      0,    causal, static_cast<float>(scale)};
    if (!given_mask.has_value() || !given_mask->defined()) return;
    mask = given_mask->expand({batches, heads, queries, keys});
    op.check("a mask", mask, mask.sizes());
    call.mask = floats_of(mask);
    call.mask_key = mask.stride(3);
  }

  Tensor query, key, value, mask;
  PanelAttention call{};
};

std::tuple<Tensor, Tensor> attention_on_cpu(const Tensor& query, const Tensor& key,
                                            const Tensor& value,
                                            const MaybeTensor& mask, bool causal,
                                            double scale) {
  const Kernels& kernels = kAttention.kernels();
  const Operands operands(kAttention, query, key, value, mask, causal, scale);
  Tensor out = at::empty_like(query), sums = sums_like(query);
  if (out.numel() == 0) return {out, sums};
  Tensor made = rows_with_adjacent_values(out);
  attend_by_panels(kernels, operands.call, written_rows_of(made),
                   written_floats_of(sums));
  if (!made.is_same(out)) out.copy_(made);
  return {out, sums};
}

std::tuple<Tensor, Tensor, Tensor> gradients_on_cpu(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& out, const Tensor& sums, const MaybeTensor& mask, bool causal,
    double scale) {
  const Kernels& kernels = kBackward.kernels();
  const Operands operands(kBackward, query, key, value, mask, causal, scale);
  kBackward.check("a gradient", grad, query.sizes(), query.scalar_type());
  kBackward.check("results", out, query.sizes(), query.scalar_type());
  kBackward.check("sums", sums, query.sizes().slice(0, 3));
  std::tuple<Tensor, Tensor, Tensor> made{gradients_like(query), gradients_like(key),
                                          gradients_like(value)};
  const auto& [of_query, of_key, of_value] = made;
  if (query.numel() == 0) {
    of_key.zero_();
    of_value.zero_();
    return made;
  }
  const Tensor rows = rows_with_adjacent_values(grad);
  const Tensor results = rows_with_adjacent_values(out);
  differentiate_by_panels(
      kernels, operands.call,
      {rows_of(rows), rows_of(results), floats_of(sums), written_rows_of(of_query),
       written_rows_of(of_key), written_rows_of(of_value)});
  return made;
}

std::tuple<Tensor, Tensor> attention_on_xpu(const Tensor& query, const Tensor& key,
                                            const Tensor& value,
                                            const MaybeTensor& mask, bool causal,
                                            double scale) {
  static const auto op = kAttention.handle();
  torch::jit::Stack stack{query, key, value, mask, causal, scale};
  kAttention.call_on_host(op, query.device(), &stack);
  return {stack[0].toTensor(), stack[1].toTensor()};
}

std::tuple<Tensor, Tensor, Tensor> gradients_on_xpu(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& out, const Tensor& sums, const MaybeTensor& mask, bool causal,
    double scale) {
  static const auto op = kBackward.handle();
  torch::jit::Stack stack{grad, query, key, value, out, sums, mask, causal, scale};
  kBackward.call_on_host(op, query.device(), &stack);
  return {stack[0].toTensor(), stack[1].toTensor(), stack[2].toTensor()};
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "panel_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool "
      "causal, float scale) -> (Tensor, Tensor)");
  m.def(
      "panel_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, "
      "Tensor out, Tensor sums, Tensor? mask, bool causal, float scale) -> (Tensor, "
      "Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("panel_attention", TORCH_FN(attention_on_cpu));
  m.impl("panel_attention_backward", TORCH_FN(gradients_on_cpu));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("panel_attention", TORCH_FN(attention_on_xpu));
  m.impl("panel_attention_backward", TORCH_FN(gradients_on_xpu));
}

}  // namespace
}  // namespace xpurt
