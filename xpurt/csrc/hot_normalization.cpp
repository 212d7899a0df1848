// Normalization.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/native_batch_norm_backward_ops.h>
#include <ATen/ops/native_batch_norm_ops.h>
#include <ATen/ops/native_group_norm_backward_ops.h>
#include <ATen/ops/native_group_norm_ops.h>
#include <ATen/ops/native_layer_norm_backward_ops.h>
#include <ATen/ops/native_layer_norm_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::native_layer_norm>(m);
  hot<at::_ops::native_layer_norm_backward>(m);
  hot<at::_ops::native_batch_norm>(m);
  hot<at::_ops::native_batch_norm_backward>(m);
  hot<at::_ops::native_group_norm>(m);
  hot<at::_ops::native_group_norm_backward>(m);
}

}  // namespace
}  // namespace xpurt
