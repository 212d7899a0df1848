// Arithmetic of two elements.
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/add_native.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/atan2_ops.h>
#include <ATen/ops/div_native.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/floor_divide_ops.h>
#include <ATen/ops/fmax_ops.h>
#include <ATen/ops/fmin_ops.h>
#include <ATen/ops/fmod_ops.h>
#include <ATen/ops/hypot_ops.h>
#include <ATen/ops/logaddexp_ops.h>
#include <ATen/ops/maximum_native.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/minimum_native.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mul_native.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/remainder_ops.h>
#include <ATen/ops/rsub_ops.h>
#include <ATen/ops/sub_native.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/xlogy_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::add_Tensor, at::native::structured_ufunc_add_CPU>(m);
  unboxed<at::_ops::add__Tensor, at::native::structured_ufunc_add_CPU>(m);
  unboxed<at::_ops::add_out, at::native::structured_ufunc_add_CPU>(m);
  unboxed<at::_ops::sub_Tensor, at::native::structured_sub_out>(m);
  unboxed<at::_ops::sub__Tensor, at::native::structured_sub_out>(m);
  unboxed<at::_ops::sub_out, at::native::structured_sub_out>(m);
  unboxed<at::_ops::mul_Tensor, at::native::structured_mul_out>(m);
  unboxed<at::_ops::mul__Tensor, at::native::structured_mul_out>(m);
  unboxed<at::_ops::mul_out, at::native::structured_mul_out>(m);
  unboxed<at::_ops::div_Tensor, at::native::structured_div_out>(m);
  unboxed<at::_ops::div__Tensor, at::native::structured_div_out>(m);
  unboxed<at::_ops::div_out, at::native::structured_div_out>(m);
  unboxed<at::_ops::div_Tensor_mode>(m);
  unboxed<at::_ops::div__Tensor_mode>(m);
  unboxed<at::_ops::rsub_Tensor>(m);
  unboxed<at::_ops::remainder_Tensor>(m);
  unboxed<at::_ops::floor_divide>(m);
  unboxed<at::_ops::fmod_Tensor>(m);
  unboxed<at::_ops::pow_Tensor_Scalar>(m);
  unboxed<at::_ops::pow_Tensor_Tensor>(m);
  unboxed<at::_ops::pow_Scalar>(m);
  unboxed<at::_ops::pow__Scalar>(m);
  unboxed<at::_ops::atan2>(m);
  unboxed<at::_ops::hypot>(m);
  unboxed<at::_ops::maximum, at::native::structured_maximum_out>(m);
  unboxed<at::_ops::minimum, at::native::structured_minimum_out>(m);
  unboxed<at::_ops::fmin>(m);
  unboxed<at::_ops::fmax>(m);
  unboxed<at::_ops::xlogy_Tensor>(m);
  unboxed<at::_ops::logaddexp>(m);
}

}  // namespace
}  // namespace xpurt
