// Functions of one element.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/fill_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/pow_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/zero_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::neg>(m);
  hot<at::_ops::neg_>(m);
  hot<at::_ops::exp>(m);
  hot<at::_ops::exp_>(m);
  hot<at::_ops::log>(m);
  hot<at::_ops::log_>(m);
  hot<at::_ops::sqrt>(m);
  hot<at::_ops::sqrt_>(m);
  hot<at::_ops::rsqrt>(m);
  hot<at::_ops::sin>(m);
  hot<at::_ops::cos>(m);
  hot<at::_ops::reciprocal>(m);
  hot<at::_ops::pow_Tensor_Scalar>(m);
  hot<at::_ops::pow_Tensor_Tensor>(m);
  hot<at::_ops::fill__Scalar>(m);
  hot<at::_ops::fill__Tensor>(m);
  hot<at::_ops::zero_>(m);
}

}  // namespace
}  // namespace xpurt
