// Functions of one element.
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/acos_ops.h>
#include <ATen/ops/asin_ops.h>
#include <ATen/ops/atan_ops.h>
#include <ATen/ops/bitwise_or.h>
#include <ATen/ops/ceil_native.h>
#include <ATen/ops/ceil_ops.h>
#include <ATen/ops/cos_native.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/cosh_ops.h>
#include <ATen/ops/digamma_ops.h>
#include <ATen/ops/erf_native.h>
#include <ATen/ops/erf_ops.h>
#include <ATen/ops/erfc_ops.h>
#include <ATen/ops/erfinv_ops.h>
#include <ATen/ops/exp2_ops.h>
#include <ATen/ops/exp_native.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/expm1_native.h>
#include <ATen/ops/expm1_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/floor_native.h>
#include <ATen/ops/floor_ops.h>
#include <ATen/ops/frac_ops.h>
#include <ATen/ops/isnan_ops.h>
#include <ATen/ops/lgamma_ops.h>
#include <ATen/ops/log10_ops.h>
#include <ATen/ops/log1p_native.h>
#include <ATen/ops/log1p_ops.h>
#include <ATen/ops/log2_ops.h>
#include <ATen/ops/log_native.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/logit_ops.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/reciprocal_native.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/round_ops.h>
#include <ATen/ops/rsqrt_native.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sgn_ops.h>
#include <ATen/ops/sign_ops.h>
#include <ATen/ops/sin_native.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sinh_ops.h>
#include <ATen/ops/sqrt_native.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/tan_ops.h>
#include <ATen/ops/trunc_ops.h>

namespace xpurt {
namespace {

// abs() of bools is the identity. PyTorch's CPU kernel rejects bools; its GPU kernel
// accepts them.
struct AbsOut {
  static at::Tensor& redispatch(c10::DispatchKeySet keys, const at::Tensor& self,
                                at::Tensor& out) {
    if (C10_LIKELY(self.scalar_type() != c10::ScalarType::Bool)) {
      return at::_ops::abs_out::redispatch(keys, self, out);
    }
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return at::bitwise_or_out(out, self, self);
  }
};

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::abs_out, void, AbsOut>(m);
  unboxed<at::_ops::neg, at::native::structured_neg_out>(m);
  unboxed<at::_ops::neg_, at::native::structured_neg_out>(m);
  unboxed<at::_ops::exp, at::native::structured_exp_out>(m);
  unboxed<at::_ops::exp_, at::native::structured_exp_out>(m);
  unboxed<at::_ops::exp2>(m);
  unboxed<at::_ops::expm1, at::native::structured_expm1_out>(m);
  unboxed<at::_ops::log, at::native::structured_log_out>(m);
  unboxed<at::_ops::log_, at::native::structured_log_out>(m);
  unboxed<at::_ops::log2>(m);
  unboxed<at::_ops::log10>(m);
  unboxed<at::_ops::log1p, at::native::structured_log1p_out>(m);
  unboxed<at::_ops::sqrt, at::native::structured_sqrt_out>(m);
  unboxed<at::_ops::sqrt_, at::native::structured_sqrt_out>(m);
  unboxed<at::_ops::rsqrt, at::native::structured_rsqrt_out>(m);
  unboxed<at::_ops::rsqrt_, at::native::structured_rsqrt_out>(m);
  unboxed<at::_ops::sin, at::native::structured_sin_out>(m);
  unboxed<at::_ops::cos, at::native::structured_cos_out>(m);
  unboxed<at::_ops::tan>(m);
  unboxed<at::_ops::asin>(m);
  unboxed<at::_ops::acos>(m);
  unboxed<at::_ops::atan>(m);
  unboxed<at::_ops::sinh>(m);
  unboxed<at::_ops::cosh>(m);
  unboxed<at::_ops::reciprocal, at::native::structured_reciprocal_out>(m);
  unboxed<at::_ops::reciprocal_, at::native::structured_reciprocal_out>(m);
  unboxed<at::_ops::erf, at::native::structured_erf_out>(m);
  unboxed<at::_ops::erfc>(m);
  unboxed<at::_ops::erfinv>(m);
  unboxed<at::_ops::floor, at::native::structured_floor_out>(m);
  unboxed<at::_ops::ceil, at::native::structured_ceil_out>(m);
  unboxed<at::_ops::round>(m);
  unboxed<at::_ops::trunc>(m);
  unboxed<at::_ops::frac>(m);
  unboxed<at::_ops::sign>(m);
  unboxed<at::_ops::sgn>(m);
  unboxed<at::_ops::lgamma>(m);
  unboxed<at::_ops::digamma>(m);
  unboxed<at::_ops::isnan>(m);
  unboxed<at::_ops::fill__Scalar>(m);
  unboxed<at::_ops::fill__Tensor>(m);
  unboxed<at::_ops::logit>(m);
}

}  // namespace
}  // namespace xpurt
