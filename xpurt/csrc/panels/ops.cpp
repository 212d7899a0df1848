// The op xpurt::panel_linear.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "dispatch/dispatch.h"
#include "native/alias.h"
#include "panels/linear.h"
#include "winograd/parts.h"

namespace xpurt {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr const char* kName = "xpurt::panel_linear";

bool is_given(const MaybeTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

void check(const char* what, const Tensor& tensor, at::IntArrayRef sizes) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == at::kFloat, kName, " wants ", what,
                   " in float32; found ", tensor.scalar_type(),
                   ". Convert it by .float()");
  TORCH_CHECK_VALUE(tensor.sizes() == sizes, kName, " wants ", what, " of shape ",
                    sizes, "; found ", tensor.sizes());
}

AfterSum after_sum(c10::string_view activation) {
  if (activation == "none") return AfterSum::none;
  if (activation == "relu") return AfterSum::relu;
  TORCH_CHECK_VALUE(activation == "gelu", kName,
                    " computes the activations none, relu and gelu; found ",
                    activation);
  return AfterSum::gelu;
}

Tensor on_cpu(const Tensor& x, const Tensor& weight, const MaybeTensor& bias,
              const MaybeTensor& other, int64_t columns, c10::string_view activation) {
  const Kernels* const kernels = winograd_kernels();
  TORCH_CHECK_NOT_IMPLEMENTED(kernels != nullptr, kName,
                              " wants a processor with AVX2 or AVX-512, which this one "
                              "has not. Use torch.nn.functional.linear");
  const int64_t panel = kernels->panel, count = divide_up(columns, panel);
  TORCH_CHECK_VALUE(x.dim() > 0 && weight.dim() == 3, kName,
                    " wants activations and a weight in panels; found shapes ",
                    x.sizes(), " and ", weight.sizes());
  const int64_t inner = x.size(-1);
  auto sizes = x.sizes().vec();
  const int64_t rows = c10::multiply_integers(sizes.begin(), sizes.end() - 1);
  sizes.back() = columns;
  check("activations", x, x.sizes());
  check("a weight", weight, {count, inner, panel});
  const Tensor left = x.contiguous(), panels = weight.contiguous();
  Tensor biases, added;
  if (is_given(bias)) {
    check("a bias", *bias, {columns});
    biases = bias->contiguous();
  }
  if (is_given(other)) {
    check("what is added", *other, sizes);
    added = other->contiguous();
  }
  Tensor result = at::empty(sizes, x.options());
  if (result.numel() == 0) return result;
  multiply_panels(*kernels,
                  {rows, inner, columns, left.const_data_ptr<float>(),
                   panels.const_data_ptr<float>(),
                   biases.defined() ? biases.const_data_ptr<float>() : nullptr,
                   added.defined() ? added.const_data_ptr<float>() : nullptr,
                   after_sum(activation)},
                  result.mutable_data_ptr<float>());
  return result;
}

// The CPU's on the same bytes, a native tier like that of PyTorch's ops.
Tensor on_xpu(const Tensor& x, const Tensor& weight, const MaybeTensor& bias,
              const MaybeTensor& other, int64_t columns, c10::string_view activation) {
  const at::Device device = x.is_xpu() ? x.device() : weight.device();
  TORCH_CHECK_NOT_IMPLEMENTED(
      host_reads(device.index()), kName,
      " wants an xpu device whose memory the host reads; found ", device,
      ". Use torch.nn.functional.linear");
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(kName, "");
  torch::jit::Stack stack{x, weight, bias, other, columns, std::string(activation)};
  run_op(op_record(op), c10::DispatchKeySet(c10::DispatchKey::XPU), &stack);
  return stack.front().toTensor();
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "panel_linear(Tensor x, Tensor weight, Tensor? bias, Tensor? other, int columns, "
      "str activation) -> Tensor");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("panel_linear", TORCH_FN(on_cpu));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("panel_linear", TORCH_FN(on_xpu));
}

}  // namespace
}  // namespace xpurt
