// Activation functions and their gradients.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/gelu_ops.h>
#include <ATen/ops/gelu_backward_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/silu_ops.h>
#include <ATen/ops/silu_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/threshold_backward_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::relu>(m);
  hot<at::_ops::relu_>(m);
  hot<at::_ops::sigmoid>(m);
  hot<at::_ops::sigmoid_>(m);
  hot<at::_ops::sigmoid_backward>(m);
  hot<at::_ops::tanh>(m);
  hot<at::_ops::tanh_>(m);
  hot<at::_ops::tanh_backward>(m);
  hot<at::_ops::gelu>(m);
  hot<at::_ops::gelu_backward>(m);
  hot<at::_ops::silu>(m);
  hot<at::_ops::silu_backward>(m);
  hot<at::_ops::threshold_backward>(m);
}

}  // namespace
}  // namespace xpurt
