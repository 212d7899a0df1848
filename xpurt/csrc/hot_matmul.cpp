// Products of matrices.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/baddbmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/mm_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::mm>(m);
  hot<at::_ops::mm_out>(m);
  hot<at::_ops::addmm>(m);
  hot<at::_ops::addmm_out>(m);
  hot<at::_ops::addmm_>(m);
  hot<at::_ops::bmm>(m);
  hot<at::_ops::baddbmm>(m);
}

}  // namespace
}  // namespace xpurt
