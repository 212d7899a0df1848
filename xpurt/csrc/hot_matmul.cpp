// Products of matrices and vectors.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/addmv_ops.h>
#include <ATen/ops/addr_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/dot_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/vdot_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::mm>(m);
  hot<at::_ops::mm_out>(m);
  hot<at::_ops::addmm>(m);
  hot<at::_ops::addmm_out>(m);
  hot<at::_ops::addmm_>(m);
  hot<at::_ops::bmm>(m);
  hot<at::_ops::bmm_out>(m);
  hot<at::_ops::baddbmm>(m);
  hot<at::_ops::baddbmm_>(m);
  hot<at::_ops::addmv>(m);
  hot<at::_ops::addr>(m);
  hot<at::_ops::dot>(m);
  hot<at::_ops::vdot>(m);
}

}  // namespace
}  // namespace xpurt
