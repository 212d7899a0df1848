// Losses, and the gradient of an embedding.
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/binary_cross_entropy_backward_ops.h>
#include <ATen/ops/binary_cross_entropy_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/huber_loss_ops.h>
#include <ATen/ops/mse_loss_backward_ops.h>
#include <ATen/ops/mse_loss_ops.h>
#include <ATen/ops/native_dropout_backward_ops.h>
#include <ATen/ops/nll_loss2d_backward_ops.h>
#include <ATen/ops/nll_loss2d_forward_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>
#include <ATen/ops/smooth_l1_loss_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::nll_loss_forward>(m);
  unboxed<at::_ops::nll_loss_backward>(m);
  unboxed<at::_ops::nll_loss2d_forward>(m);
  unboxed<at::_ops::nll_loss2d_backward>(m);
  unboxed<at::_ops::mse_loss>(m);
  unboxed<at::_ops::mse_loss_backward>(m);
  unboxed<at::_ops::smooth_l1_loss>(m);
  unboxed<at::_ops::huber_loss>(m);
  unboxed<at::_ops::binary_cross_entropy>(m);
  unboxed<at::_ops::binary_cross_entropy_backward>(m);
  unboxed<at::_ops::embedding_dense_backward>(m);
  unboxed<at::_ops::native_dropout_backward>(m);
}

}  // namespace
}  // namespace xpurt
