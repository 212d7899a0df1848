// Ops of optimizers.
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale_ops.h>
#include <ATen/ops/addcdiv_native.h>
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_native.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/lerp_native.h>
#include <ATen/ops/lerp_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::addcmul, at::native::structured_addcmul_out>(m);
  unboxed<at::_ops::addcmul_, at::native::structured_addcmul_out>(m);
  unboxed<at::_ops::addcdiv, at::native::structured_addcdiv_out>(m);
  unboxed<at::_ops::addcdiv_, at::native::structured_addcdiv_out>(m);
  unboxed<at::_ops::lerp_Scalar, at::native::structured_lerp_Scalar>(m);
  unboxed<at::_ops::lerp__Scalar, at::native::structured_lerp_Scalar>(m);
  unboxed<at::_ops::lerp_Tensor, at::native::structured_lerp_Tensor>(m);
  unboxed<at::_ops::lerp__Tensor, at::native::structured_lerp_Tensor>(m);
  unboxed<at::_ops::_amp_foreach_non_finite_check_and_unscale_>(m);
}

}  // namespace
}  // namespace xpurt
