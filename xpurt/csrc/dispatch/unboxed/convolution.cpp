// Convolutions: PyTorch calls these two ops for out-of-tree devices, and other ops for
// the CPU.
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/convolution_backward_ops.h>
#include <ATen/ops/convolution_backward_overrideable_ops.h>
#include <ATen/ops/convolution_ops.h>
#include <ATen/ops/convolution_overrideable_ops.h>

namespace xpurt {
namespace {

struct Convolution {
  template <typename... Args>
  static at::Tensor redispatch(c10::DispatchKeySet, Args&&... args) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return at::_ops::convolution::call(args...);
  }
};

struct ConvolutionBackward {
  template <typename... Args>
  static std::tuple<at::Tensor, at::Tensor, at::Tensor> redispatch(
      c10::DispatchKeySet, const at::Tensor& grad, const at::Tensor& input,
      const at::Tensor& weight, Args&&... args) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::SymInt bias_size = grad.sym_size(1);
    return at::_ops::convolution_backward::call(
        grad, input, weight, c10::SymIntArrayRef(&bias_size, 1), args...);
  }
};

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::convolution_overrideable, void, Convolution>(m);
  unboxed<at::_ops::convolution_backward_overrideable, void, ConvolutionBackward>(m);
}

}  // namespace
}  // namespace xpurt
