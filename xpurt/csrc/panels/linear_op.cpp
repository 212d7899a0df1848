// The op xpurt::panel_linear.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "lanes/lines.h"
#include "panels/linear.h"
#include "panels/lane_op.h"

namespace xpurt {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr LaneOp kLinear{"xpurt::panel_linear", "torch.nn.functional.linear"};

bool is_given(const MaybeTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

AfterSum after_sum(c10::string_view activation) {
  if (activation == "none") return AfterSum::none;
  if (activation == "relu") return AfterSum::relu;
  TORCH_CHECK_VALUE(activation == "gelu", kLinear.name,
                    " computes the activations none, relu and gelu; found ",
                    activation);
  return AfterSum::gelu;
}

Tensor linear_on_cpu(const Tensor& x, const Tensor& weight, const MaybeTensor& bias,
                     const MaybeTensor& other, int64_t columns,
                     c10::string_view activation) {
  const Kernels& kernels = kLinear.kernels();
  const int64_t panel = kernels.panel, count = divide_up(columns, panel);
  TORCH_CHECK_VALUE(x.dim() > 0 && weight.dim() == 3, kLinear.name,
                    " wants activations and a weight in panels; found shapes ",
                    x.sizes(), " and ", weight.sizes());
  const int64_t inner = x.size(-1);
  auto sizes = x.sizes().vec();
  const int64_t rows = c10::multiply_integers(sizes.begin(), sizes.end() - 1);
  sizes.back() = columns;
  kLinear.check("activations", x, x.sizes());
  kLinear.check("a weight", weight, {count, inner, panel});
  const Tensor left = x.contiguous(), panels = weight.contiguous();
  Tensor biases, added;
  if (is_given(bias)) {
    kLinear.check("a bias", *bias, {columns});
    biases = bias->contiguous();
  }
  if (is_given(other)) {
    kLinear.check("what is added", *other, sizes);
    added = other->contiguous();
  }
  const AfterSum after = after_sum(activation);
  Tensor result = at::empty(sizes, x.options());
  if (result.numel() == 0) return result;
  multiply_panels(kernels,
                  {rows, inner, columns, left.const_data_ptr<float>(),
                   panels.const_data_ptr<float>(),
                   biases.defined() ? biases.const_data_ptr<float>() : nullptr,
                   added.defined() ? added.const_data_ptr<float>() : nullptr, after},
                  result.mutable_data_ptr<float>());
  return result;
}

Tensor linear_on_xpu(const Tensor& x, const Tensor& weight, const MaybeTensor& bias,
                     const MaybeTensor& other, int64_t columns,
                     c10::string_view activation) {
  const at::Device device = x.is_xpu() ? x.device() : weight.device();
  static const auto op = kLinear.handle();
  torch::jit::Stack stack{x, weight, bias, other, columns, std::string(activation)};
  kLinear.call_on_host(op, device, &stack);
  return stack.front().toTensor();
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "panel_linear(Tensor x, Tensor weight, Tensor? bias, Tensor? other, int columns, "
      "str activation) -> Tensor");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("panel_linear", TORCH_FN(linear_on_cpu));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("panel_linear", TORCH_FN(linear_on_xpu));
}

}  // namespace
}  // namespace xpurt
