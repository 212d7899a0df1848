// Products of matrices and vectors.
#include "dispatch/unboxed/direct_structured.h"
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
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
  unboxed<at::_ops::mm, DirectMm>(m);
  unboxed<at::_ops::mm_out>(m);
  unboxed<at::_ops::addmm>(m);
  unboxed<at::_ops::addmm_out>(m);
  unboxed<at::_ops::addmm_>(m);
  unboxed<at::_ops::bmm>(m);
  unboxed<at::_ops::bmm_out>(m);
  unboxed<at::_ops::baddbmm>(m);
  unboxed<at::_ops::baddbmm_>(m);
  unboxed<at::_ops::addmv>(m);
  unboxed<at::_ops::addr>(m);
  unboxed<at::_ops::dot>(m);
  unboxed<at::_ops::vdot>(m);
}

}  // namespace
}  // namespace xpurt
