// Activation functions and their gradients.
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/_prelu_kernel_backward_ops.h>
#include <ATen/ops/_prelu_kernel_ops.h>
#include <ATen/ops/clamp_min_native.h>
#include <ATen/ops/elu_backward_ops.h>
#include <ATen/ops/elu_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/glu_backward_ops.h>
#include <ATen/ops/glu_ops.h>
#include <ATen/ops/hardsigmoid_backward_ops.h>
#include <ATen/ops/hardsigmoid_ops.h>
#include <ATen/ops/hardswish_backward_ops.h>
#include <ATen/ops/hardswish_ops.h>
#include <ATen/ops/hardtanh_backward_ops.h>
#include <ATen/ops/hardtanh_ops.h>
#include <ATen/ops/leaky_relu_backward_ops.h>
#include <ATen/ops/leaky_relu_ops.h>
#include <ATen/ops/log_sigmoid_backward_ops.h>
#include <ATen/ops/log_sigmoid_forward_ops.h>
#include <ATen/ops/mish_backward_ops.h>
#include <ATen/ops/mish_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_backward_native.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_native.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/silu_backward_native.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/silu_native.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/softplus_backward_ops.h>
#include <ATen/ops/softplus_ops.h>
#include <ATen/ops/tanh_backward_native.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_native.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_native.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <ATen/ops/threshold_ops.h>

namespace xpurt {
namespace {

// relu() as PyTorch defines it.
struct Relu : at::native::structured_clamp_min_out {
  void meta(const at::Tensor& self) { structured_clamp_min_out::meta(self, 0); }
  void impl(const at::Tensor& self, const at::Tensor& out) {
    structured_clamp_min_out::impl(self, 0, out);
  }
};

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::relu, Relu>(m);
  unboxed<at::_ops::relu_, Relu>(m);
  unboxed<at::_ops::sigmoid, at::native::structured_sigmoid_out>(m);
  unboxed<at::_ops::sigmoid_, at::native::structured_sigmoid_out>(m);
  unboxed<at::_ops::sigmoid_backward, at::native::structured_sigmoid_backward_out>(m);
  unboxed<at::_ops::tanh, at::native::structured_tanh_out>(m);
  unboxed<at::_ops::tanh_, at::native::structured_tanh_out>(m);
  unboxed<at::_ops::tanh_backward, at::native::structured_tanh_backward_out>(m);
  unboxed<at::_ops::gelu>(m);
  unboxed<at::_ops::gelu_backward>(m);
  unboxed<at::_ops::silu, at::native::structured_silu_out>(m);
  unboxed<at::_ops::silu_, at::native::structured_silu_out>(m);
  unboxed<at::_ops::silu_backward, at::native::structured_silu_backward_out>(m);
  unboxed<at::_ops::threshold>(m);
  unboxed<at::_ops::threshold_backward, at::native::structured_threshold_backward_out>(
      m);
  unboxed<at::_ops::elu>(m);
  unboxed<at::_ops::elu_backward>(m);
  unboxed<at::_ops::leaky_relu>(m);
  unboxed<at::_ops::leaky_relu_>(m);
  unboxed<at::_ops::leaky_relu_backward>(m);
  unboxed<at::_ops::hardtanh>(m);
  unboxed<at::_ops::hardtanh_>(m);
  unboxed<at::_ops::hardtanh_backward>(m);
  unboxed<at::_ops::hardswish>(m);
  unboxed<at::_ops::hardswish_>(m);
  unboxed<at::_ops::hardswish_backward>(m);
  unboxed<at::_ops::hardsigmoid>(m);
  unboxed<at::_ops::hardsigmoid_backward>(m);
  unboxed<at::_ops::softplus>(m);
  unboxed<at::_ops::softplus_backward>(m);
  unboxed<at::_ops::mish>(m);
  unboxed<at::_ops::mish_backward>(m);
  unboxed<at::_ops::log_sigmoid_forward>(m);
  unboxed<at::_ops::log_sigmoid_backward>(m);
  unboxed<at::_ops::glu>(m);
  unboxed<at::_ops::glu_backward>(m);
  unboxed<at::_ops::_prelu_kernel>(m);
  unboxed<at::_ops::_prelu_kernel_backward>(m);
}

}  // namespace
}  // namespace xpurt
