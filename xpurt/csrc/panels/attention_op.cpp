// The op xpurt::panel_attention.
#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include "panels/attention.h"
#include "panels/operands.h"

namespace xpurt {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr PanelOp kAttention{"xpurt::panel_attention",
                             "torch.nn.functional.scaled_dot_product_attention"};

TokenRows<const float> rows_of(const Tensor& tensor) {
  return {tensor.const_data_ptr<float>(), tensor.stride(0), tensor.stride(1),
          tensor.stride(2)};
}

TokenRows<float> written_rows_of(const Tensor& tensor) {
  return {tensor.mutable_data_ptr<float>(), tensor.stride(0), tensor.stride(1),
          tensor.stride(2)};
}

// With adjacent values in a row.
Tensor rows_with_adjacent_values(const Tensor& tensor) {
  return tensor.size(3) == 1 || tensor.stride(3) == 1 ? tensor : tensor.contiguous();
}

std::tuple<Tensor, Tensor> attention_on_cpu(const Tensor& query, const Tensor& key,
                                            const Tensor& value,
                                            const MaybeTensor& mask, bool causal,
                                            double scale) {
  const Kernels& kernels = kAttention.kernels();
  TORCH_CHECK_VALUE(query.dim() == 4 && key.dim() == 4 && key.size(2) > 0,
                    kAttention.name,
                    " wants queries and keys (batch, heads, tokens, size); found ",
                    query.sizes(), " and ", key.sizes());
  const int64_t batches = query.size(0), heads = query.size(1);
  const int64_t queries = query.size(2), keys = key.size(2), size = query.size(3);
  kAttention.check("queries", query, query.sizes());
  kAttention.check("keys", key, {batches, heads, keys, size});
  kAttention.check("values", value, {batches, heads, keys, size});
  Tensor out = at::empty_like(query);
  Tensor sums = at::empty({batches, queries, heads}, query.options()).transpose(1, 2);
  if (out.numel() == 0) return {out, sums};
  const Tensor q = rows_with_adjacent_values(query), k = rows_with_adjacent_values(key),
               v = rows_with_adjacent_values(value);
  PanelAttention call{batches, heads,      queries,    keys,
                      size,    rows_of(q), rows_of(k), rows_of(v),
                      {},      0,          causal,     static_cast<float>(scale)};
  Tensor added;
  if (mask.has_value() && mask->defined()) {
    added = mask->expand({batches, heads, queries, keys});
    kAttention.check("a mask", added, added.sizes());
    call.mask = rows_of(added);
    call.mask_key = added.stride(3);
  }
  Tensor made = rows_with_adjacent_values(out);
  attend_by_panels(kernels, call, written_rows_of(made), written_rows_of(sums));
  if (!made.is_same(out)) out.copy_(made);
  return {out, sums};
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

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "panel_attention(Tensor query, Tensor key, Tensor value, Tensor? mask, bool "
      "causal, float scale) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("panel_attention", TORCH_FN(attention_on_cpu));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("panel_attention", TORCH_FN(attention_on_xpu));
}

}  // namespace
}  // namespace xpurt
