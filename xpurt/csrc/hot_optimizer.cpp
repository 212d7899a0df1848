// What optimizers do to parameters.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/addcdiv_ops.h>
#include <ATen/ops/addcmul_ops.h>
#include <ATen/ops/lerp_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::addcmul>(m);
  hot<at::_ops::addcmul_>(m);
  hot<at::_ops::addcdiv>(m);
  hot<at::_ops::addcdiv_>(m);
  hot<at::_ops::lerp_Scalar>(m);
  hot<at::_ops::lerp__Scalar>(m);
  hot<at::_ops::lerp_Tensor>(m);
  hot<at::_ops::lerp__Tensor>(m);
}

}  // namespace
}  // namespace xpurt
