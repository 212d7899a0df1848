// Joining and picking.
#include "hot.h"

// Need what hot.h brings.
#include <ATen/ops/cat_ops.h>
#include <ATen/ops/gather_ops.h>
#include <ATen/ops/index_select_ops.h>
#include <ATen/ops/masked_fill_ops.h>
#include <ATen/ops/scatter_add_ops.h>

namespace xpurt {
namespace {

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  hot<at::_ops::cat>(m);
  hot<at::_ops::cat_out>(m);
  hot<at::_ops::index_select>(m);
  hot<at::_ops::gather>(m);
  hot<at::_ops::masked_fill__Scalar>(m);
  hot<at::_ops::scatter_add_>(m);
}

}  // namespace
}  // namespace xpurt
