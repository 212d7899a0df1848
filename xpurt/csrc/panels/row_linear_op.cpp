// The op xpurt::row_linear.
#include <torch/library.h>

#include "blocks/bfloat16_products.h"
#include "panels/lane_op.h"

namespace xpurt {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr LaneOp kRowLinear{"xpurt::row_linear", "torch.nn.functional.linear"};

Tensor row_linear_on_cpu(const Tensor& x, const Tensor& weight,
                         const MaybeTensor& bias) {
  TORCH_CHECK_NOT_IMPLEMENTED(multiplies_rows_of_bfloat16(), kRowLinear.name,
                              " wants a processor with AVX-512 that multiplies in "
                              "bfloat16, which this one does not. Use ",
                              kRowLinear.instead);
  TORCH_CHECK_VALUE(
      x.dim() > 0 && weight.dim() == 2 && x.size(-1) == weight.size(1), kRowLinear.name,
      " wants activations (..., in) and a weight (out, in); found shapes ", x.sizes(),
      " and ", weight.sizes());
  kRowLinear.check_type("activations", x, at::kBFloat16);
  kRowLinear.check_type("a weight", weight, at::kBFloat16);
  if (bias.has_value() && bias->defined()) {
    kRowLinear.check("a bias", *bias, {weight.size(0)}, at::kBFloat16);
  }
  return bfloat16_product(x, weight, bias);
}

Tensor row_linear_on_xpu(const Tensor& x, const Tensor& weight,
                         const MaybeTensor& bias) {
  const at::Device device = x.is_xpu() ? x.device() : weight.device();
  static const auto op = kRowLinear.handle();
  torch::jit::Stack stack{x, weight, bias};
  kRowLinear.call_on_host(op, device, &stack);
  return stack.front().toTensor();
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def("row_linear(Tensor x, Tensor weight, Tensor? bias) -> Tensor");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("row_linear", TORCH_FN(row_linear_on_cpu));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("row_linear", TORCH_FN(row_linear_on_xpu));
}

}  // namespace
}  // namespace xpurt
