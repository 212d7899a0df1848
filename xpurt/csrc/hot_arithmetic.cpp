// Arithmetic of one element with another.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/add_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/sub_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::add_Tensor>(m);
  hot<at::_ops::add__Tensor>(m);
  hot<at::_ops::add_out>(m);
  hot<at::_ops::sub_Tensor>(m);
  hot<at::_ops::sub__Tensor>(m);
  hot<at::_ops::sub_out>(m);
  hot<at::_ops::mul_Tensor>(m);
  hot<at::_ops::mul__Tensor>(m);
  hot<at::_ops::mul_out>(m);
  hot<at::_ops::div_Tensor>(m);
  hot<at::_ops::div__Tensor>(m);
  hot<at::_ops::div_out>(m);
}

}  // namespace
}  // namespace xpurt
