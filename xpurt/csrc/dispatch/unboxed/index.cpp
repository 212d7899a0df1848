// Concatenation, indexing, gather and scatter.
#include "dispatch/unboxed/direct_cat.h"
#include "dispatch/unboxed/direct_index.h"
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
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
  unboxed<at::_ops::cat, DirectCat>(m);
  unboxed<at::_ops::cat_out>(m);
  unboxed<at::_ops::_stack>(m);
  unboxed<at::_ops::index_Tensor, DirectIndex>(m);
  unboxed<at::_ops::_index_put_impl_>(m);
  unboxed<at::_ops::index_select, DirectIndexSelect>(m);
  unboxed<at::_ops::index_add>(m);
  unboxed<at::_ops::index_add_>(m);
  unboxed<at::_ops::index_copy_>(m);
  unboxed<at::_ops::index_fill__int_Scalar>(m);
  unboxed<at::_ops::gather, DirectGather>(m);
  unboxed<at::_ops::scatter_src>(m);
  unboxed<at::_ops::scatter_value>(m);
  unboxed<at::_ops::scatter__src>(m);
  unboxed<at::_ops::scatter__value>(m);
  unboxed<at::_ops::scatter_add>(m);
  unboxed<at::_ops::scatter_add_>(m);
  unboxed<at::_ops::masked_fill__Scalar>(m);
  unboxed<at::_ops::masked_fill__Tensor>(m);
  unboxed<at::_ops::masked_select>(m);
  unboxed<at::_ops::nonzero>(m);
  unboxed<at::_ops::take>(m);
  unboxed<at::_ops::tril>(m);
  unboxed<at::_ops::triu>(m);
  unboxed<at::_ops::tril_>(m);
  unboxed<at::_ops::triu_>(m);
  unboxed<at::_ops::flip>(m);
  unboxed<at::_ops::roll>(m);
  unboxed<at::_ops::unfold_backward>(m);
}

}  // namespace
}  // namespace xpurt
