// Functions of one element.
#include "hot.h"

// Need what hot.h brings.
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

// PyTorch's CPU kernel refuses bools, which are their own magnitude. A GPU's does not.
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
  hot<at::_ops::abs_out, void, AbsOut>(m);
  hot<at::_ops::neg, at::native::structured_neg_out>(m);
  hot<at::_ops::neg_, at::native::structured_neg_out>(m);
  hot<at::_ops::exp, at::native::structured_exp_out>(m);
  hot<at::_ops::exp_, at::native::structured_exp_out>(m);
  hot<at::_ops::exp2>(m);
  hot<at::_ops::expm1, at::native::structured_expm1_out>(m);
  hot<at::_ops::log, at::native::structured_log_out>(m);
  hot<at::_ops::log_, at::native::structured_log_out>(m);
  hot<at::_ops::log2>(m);
  hot<at::_ops::log10>(m);
  hot<at::_ops::log1p, at::native::structured_log1p_out>(m);
  hot<at::_ops::sqrt, at::native::structured_sqrt_out>(m);
  hot<at::_ops::sqrt_, at::native::structured_sqrt_out>(m);
  hot<at::_ops::rsqrt, at::native::structured_rsqrt_out>(m);
  hot<at::_ops::rsqrt_, at::native::structured_rsqrt_out>(m);
  hot<at::_ops::sin, at::native::structured_sin_out>(m);
  hot<at::_ops::cos, at::native::structured_cos_out>(m);
  hot<at::_ops::tan>(m);
  hot<at::_ops::asin>(m);
  hot<at::_ops::acos>(m);
  hot<at::_ops::atan>(m);
  hot<at::_ops::sinh>(m);
  hot<at::_ops::cosh>(m);
  hot<at::_ops::reciprocal, at::native::structured_reciprocal_out>(m);
  hot<at::_ops::reciprocal_, at::native::structured_reciprocal_out>(m);
  hot<at::_ops::erf, at::native::structured_erf_out>(m);
  hot<at::_ops::erfc>(m);
  hot<at::_ops::erfinv>(m);
  hot<at::_ops::floor, at::native::structured_floor_out>(m);
  hot<at::_ops::ceil, at::native::structured_ceil_out>(m);
  hot<at::_ops::round>(m);
  hot<at::_ops::trunc>(m);
  hot<at::_ops::frac>(m);
  hot<at::_ops::sign>(m);
  hot<at::_ops::sgn>(m);
  hot<at::_ops::lgamma>(m);
  hot<at::_ops::digamma>(m);
  hot<at::_ops::isnan>(m);
  hot<at::_ops::fill__Scalar>(m);
  hot<at::_ops::fill__Tensor>(m);
  hot<at::_ops::logit>(m);
}

}  // namespace
}  // namespace xpurt
