// Reductions and softmax.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/var_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::sum_dim_IntList>(m);
  hot<at::_ops::mean_dim>(m);
  hot<at::_ops::amax>(m);
  hot<at::_ops::argmax>(m);
  hot<at::_ops::max>(m);
  hot<at::_ops::max_dim>(m);
  hot<at::_ops::var_correction>(m);
  hot<at::_ops::_softmax>(m);
  hot<at::_ops::_log_softmax>(m);
  hot<at::_ops::_softmax_backward_data>(m);
  hot<at::_ops::_log_softmax_backward_data>(m);
}

}  // namespace
}  // namespace xpurt
