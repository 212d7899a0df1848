// Comparisons, and what chooses by them.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/bitwise_and_ops.h>
#include <ATen/ops/clamp_ops.h>
#include <ATen/ops/eq_ops.h>
#include <ATen/ops/ge_ops.h>
#include <ATen/ops/gt_ops.h>
#include <ATen/ops/le_ops.h>
#include <ATen/ops/lt_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/ne_ops.h>
#include <ATen/ops/where_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::eq_Tensor>(m);
  hot<at::_ops::eq_Scalar>(m);
  hot<at::_ops::ne_Tensor>(m);
  hot<at::_ops::ne_Scalar>(m);
  hot<at::_ops::lt_Tensor>(m);
  hot<at::_ops::lt_Scalar>(m);
  hot<at::_ops::gt_Tensor>(m);
  hot<at::_ops::gt_Scalar>(m);
  hot<at::_ops::le_Tensor>(m);
  hot<at::_ops::le_Scalar>(m);
  hot<at::_ops::ge_Tensor>(m);
  hot<at::_ops::ge_Scalar>(m);
  hot<at::_ops::where_self>(m);
  hot<at::_ops::maximum>(m);
  hot<at::_ops::minimum>(m);
  hot<at::_ops::clamp>(m);
  hot<at::_ops::bitwise_and_Tensor>(m);
}

}  // namespace
}  // namespace xpurt
