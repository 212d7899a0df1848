// Comparisons, logic, and selection by a condition.
#include "dispatch/unboxed/direct_compare.h"
#include "dispatch/unboxed/direct_where.h"
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/bitwise_not_ops.h>
#include <ATen/ops/bitwise_or_ops.h>
#include <ATen/ops/bitwise_xor_ops.h>
#include <ATen/ops/clamp_max_ops.h>
#include <ATen/ops/clamp_min_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/eq_native.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/equal_ops.h>
#include <ATen/ops/ge_native.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_native.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_native.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/logical_and_ops.h>
#include <ATen/ops/logical_not_ops.h>
#include <ATen/ops/logical_or_ops.h>
#include <ATen/ops/lt_native.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/ne_native.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/where_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::eq_Tensor, at::native::structured_eq_Tensor_out>(m);
  unboxed<at::_ops::eq_Scalar, DirectCompare<at::native::structured_eq_Tensor_out>>(m);
  unboxed<at::_ops::ne_Tensor, at::native::structured_ne_Tensor_out>(m);
  unboxed<at::_ops::ne_Scalar, DirectCompare<at::native::structured_ne_Tensor_out>>(m);
  unboxed<at::_ops::lt_Tensor, at::native::structured_lt_Tensor_out>(m);
  unboxed<at::_ops::lt_Scalar, DirectCompare<at::native::structured_lt_Tensor_out>>(m);
  unboxed<at::_ops::gt_Tensor, at::native::structured_gt_Tensor_out>(m);
  unboxed<at::_ops::gt_Scalar, DirectCompare<at::native::structured_gt_Tensor_out>>(m);
  unboxed<at::_ops::le_Tensor, at::native::structured_le_Tensor_out>(m);
  unboxed<at::_ops::le_Scalar, DirectCompare<at::native::structured_le_Tensor_out>>(m);
  unboxed<at::_ops::ge_Tensor, at::native::structured_ge_Tensor_out>(m);
  unboxed<at::_ops::ge_Scalar, DirectCompare<at::native::structured_ge_Tensor_out>>(m);
  unboxed<at::_ops::where_self, DirectWhere>(m);
  unboxed<at::_ops::clamp>(m);
  unboxed<at::_ops::clamp_>(m);
  unboxed<at::_ops::clamp_Tensor>(m);
  unboxed<at::_ops::clamp_min>(m);
  unboxed<at::_ops::clamp_min_>(m);
  unboxed<at::_ops::clamp_max>(m);
  unboxed<at::_ops::clamp_max_>(m);
  unboxed<at::_ops::bitwise_and_Tensor>(m);
  unboxed<at::_ops::bitwise_or_Tensor>(m);
  unboxed<at::_ops::bitwise_xor_Tensor>(m);
  unboxed<at::_ops::bitwise_not>(m);
  unboxed<at::_ops::logical_and_out>(m);
  unboxed<at::_ops::logical_or_out>(m);
  unboxed<at::_ops::logical_not_out>(m);
  unboxed<at::_ops::equal>(m);
}

}  // namespace
}  // namespace xpurt
