// Pooling, padding and resampling.
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/_adaptive_avg_pool2d_backward_ops.h>
#include <ATen/ops/_adaptive_avg_pool2d_ops.h>
#include <ATen/ops/avg_pool2d_backward_ops.h>
#include <ATen/ops/avg_pool2d_ops.h>
#include <ATen/ops/grid_sampler_2d_ops.h>
#include <ATen/ops/max_pool2d_with_indices_backward_ops.h>
#include <ATen/ops/max_pool2d_with_indices_ops.h>
#include <ATen/ops/reflection_pad2d_backward_ops.h>
#include <ATen/ops/reflection_pad2d_ops.h>
#include <ATen/ops/replication_pad2d_ops.h>
#include <ATen/ops/upsample_bilinear2d_backward_ops.h>
#include <ATen/ops/upsample_bilinear2d_ops.h>
#include <ATen/ops/upsample_nearest2d_backward_ops.h>
#include <ATen/ops/upsample_nearest2d_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::max_pool2d_with_indices>(m);
  unboxed<at::_ops::max_pool2d_with_indices_backward>(m);
  unboxed<at::_ops::avg_pool2d>(m);
  unboxed<at::_ops::avg_pool2d_backward>(m);
  unboxed<at::_ops::_adaptive_avg_pool2d>(m);
  unboxed<at::_ops::_adaptive_avg_pool2d_backward>(m);
  unboxed<at::_ops::reflection_pad2d>(m);
  unboxed<at::_ops::reflection_pad2d_backward>(m);
  unboxed<at::_ops::replication_pad2d>(m);
  unboxed<at::_ops::upsample_nearest2d>(m);
  unboxed<at::_ops::upsample_nearest2d_backward>(m);
  unboxed<at::_ops::upsample_bilinear2d>(m);
  unboxed<at::_ops::upsample_bilinear2d_backward>(m);
  unboxed<at::_ops::grid_sampler_2d>(m);
}

}  // namespace
}  // namespace xpurt
