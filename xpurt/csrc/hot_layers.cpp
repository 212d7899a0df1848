// Normalization, pooling and losses.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/avg_pool2d_backward_ops.h>
#include <ATen/ops/embedding_dense_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/nll_loss_backward_ops.h>
#include <ATen/ops/nll_loss_forward_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::native_layer_norm>(m);
  hot<at::_ops::native_layer_norm_backward>(m);
  hot<at::_ops::native_batch_norm>(m);
  hot<at::_ops::native_batch_norm_backward>(m);
  hot<at::_ops::max_pool2d_with_indices>(m);
  hot<at::_ops::max_pool2d_with_indices_backward>(m);
  hot<at::_ops::avg_pool2d>(m);
  hot<at::_ops::avg_pool2d_backward>(m);
  hot<at::_ops::nll_loss_forward>(m);
  hot<at::_ops::nll_loss_backward>(m);
  hot<at::_ops::embedding_dense_backward>(m);
}

}  // namespace
}  // namespace xpurt
