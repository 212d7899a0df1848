// Attention of compiled host code: by the op of xpu, on the same bytes.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <torch/library.h>

#include "device/device.h"
#include "native/share.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

using at::Tensor;

// Note [Attention of compiled host code]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Code for the host has CPU tensors, and calls PyTorch's op for them. The op of xpu has
// a kernel more to choose from, and chooses by measured times: in bfloat16 products of
// oneDNN with a softmax between them took 1.9 ms where PyTorch's kernel took 3.2 (8x8
// heads, 128 tokens, 32 elements, causal; one thread of an AMD EPYC with AVX-512_BF16,
// 2026-11-25). So the code calls this op, which calls that of xpu.
std::tuple<Tensor, Tensor> host_attention(const Tensor& query, const Tensor& key,
                                          const Tensor& value, double dropout,
                                          bool causal,
                                          const std::optional<Tensor>& mask,
                                          std::optional<double> scale) {
  const c10::DeviceIndex index = current_device();
  const Ordinal& on = ordinal(index);
  // With several devices the host's code has won over all of them.
  if (on.devices.size() > 1 || !on.home_device().system_usm || dropout != 0) {
    return at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout,
                                                           causal, mask, scale);
  }
  const auto shared = [&](const Tensor& tensor) {
    return share_with_xpu(tensor, index);
  };
  const auto of_mask = mask.has_value() && mask->defined()
                           ? std::optional<Tensor>(shared(*mask))
                           : std::nullopt;
  const auto [out, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
      shared(query), shared(key), shared(value), dropout, causal, of_mask, scale);
  return {share_with_cpu(out), share_with_cpu(sums)};
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "host_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
      "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor "
      "output, Tensor logsumexp)");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("host_attention", TORCH_FN(host_attention));
}

}  // namespace
}  // namespace xpurt
