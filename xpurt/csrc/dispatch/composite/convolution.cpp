// Convolutions: PyTorch calls these two ops for out-of-tree devices, and other ops for
// the CPU.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/convolution_native.h>
#include <torch/library.h>

#include "op/op_record.h"
#include "op/operands.h"

namespace xpurt {
namespace {

void convolution(const c10::OperatorHandle&, c10::DispatchKeySet,
                 torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  constexpr size_t kArguments = 9;
  const auto a = torch::jit::last(*stack, kArguments);
  at::Tensor result =
      at::convolution(a[0].toTensor(), a[1].toTensor(), a[2].toOptional<at::Tensor>(),
                      a[3].toIntVector(), a[4].toIntVector(), a[5].toIntVector(),
                      a[6].toBool(), a[7].toIntVector(), a[8].toInt());
  torch::jit::drop(*stack, kArguments);
  torch::jit::push(*stack, std::move(result));
}

void convolution_backward(const c10::OperatorHandle&, c10::DispatchKeySet,
                          torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  constexpr size_t kArguments = 10;
  const auto a = torch::jit::last(*stack, kArguments);
  const at::Tensor& grad = a[0].toTensor();
  const auto wanted = a[9].toBoolList();
  const std::vector<int64_t> bias_sizes{grad.size(1)};
  auto [input, weight, bias] = at::convolution_backward(
      grad, a[1].toTensor(), a[2].toTensor(), at::OptionalIntArrayRef(bias_sizes),
      a[3].toIntVector(), a[4].toIntVector(), a[5].toIntVector(), a[6].toBool(),
      a[7].toIntVector(), a[8].toInt(), {wanted[0], wanted[1], wanted[2]});
  torch::jit::drop(*stack, kArguments);
  torch::jit::push(*stack, std::move(input), std::move(weight), std::move(bias));
}

const bool convolutions_registered = set_host_kernels(
    {{"aten::convolution_overrideable", "", &convolution},
     {"aten::convolution_backward_overrideable", "", &convolution_backward}});

// PyTorch chooses a kernel by the input alone, and that of the CPU has another message
// for a weight on xpu.
at::Tensor on_one_device(const at::Tensor& input, const at::Tensor& weight,
                         const std::optional<at::Tensor>& bias, at::IntArrayRef stride,
                         at::IntArrayRef padding, at::IntArrayRef dilation,
                         bool transposed, at::IntArrayRef output_padding,
                         int64_t groups) {
  check_same_device("aten::convolution", input, weight, "weight");
  if (bias.has_value() && bias->defined()) {
    check_same_device("aten::convolution", input, *bias, "bias");
  }
  return at::native::convolution(input, weight, bias, stride, padding, dilation,
                                 transposed, output_padding, groups);
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("convolution", TORCH_FN(on_one_device));
}

}  // namespace
}  // namespace xpurt
