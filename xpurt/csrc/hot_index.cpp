// Joining, picking and placing.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/_index_put_impl_ops.h>
#include <ATen/ops/_stack_ops.h>
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/flip_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_add_ops.h>
#include <ATen/ops/index_copy_ops.h>
#include <ATen/ops/index_fill_ops.h>
#include <ATen/ops/index_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/masked_select_ops.h>
#include <ATen/ops/nonzero_ops.h>
#include <ATen/ops/roll_ops.h>
#include <ATen/ops/scatter_add_ops.h>
#include <ATen/ops/scatter_ops.h>
#include <ATen/ops/take_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/ops/triu_ops.h>
#include <ATen/ops/unfold_backward_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::cat>(m);
  hot<at::_ops::cat_out>(m);
  hot<at::_ops::_stack>(m);
  hot<at::_ops::index_Tensor>(m);
  hot<at::_ops::_index_put_impl_>(m);
  hot<at::_ops::index_select>(m);
  hot<at::_ops::index_add>(m);
  hot<at::_ops::index_add_>(m);
  hot<at::_ops::index_copy_>(m);
  hot<at::_ops::index_fill__int_Scalar>(m);
  hot<at::_ops::gather>(m);
  hot<at::_ops::scatter_src>(m);
  hot<at::_ops::scatter_value>(m);
  hot<at::_ops::scatter__src>(m);
  hot<at::_ops::scatter__value>(m);
  hot<at::_ops::scatter_add>(m);
  hot<at::_ops::scatter_add_>(m);
  hot<at::_ops::masked_fill__Scalar>(m);
  hot<at::_ops::masked_fill__Tensor>(m);
  hot<at::_ops::masked_select>(m);
  hot<at::_ops::nonzero>(m);
  hot<at::_ops::take>(m);
  hot<at::_ops::tril>(m);
  hot<at::_ops::triu>(m);
  hot<at::_ops::tril_>(m);
  hot<at::_ops::triu_>(m);
  hot<at::_ops::flip>(m);
  hot<at::_ops::roll>(m);
  hot<at::_ops::unfold_backward>(m);
}

}  // namespace
}  // namespace xpurt
