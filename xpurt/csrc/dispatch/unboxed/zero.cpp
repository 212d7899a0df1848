// zero_, which also makes new tensors of zeros.
#include "dispatch/host_memcpy.h"
#include "dispatch/unboxed/unboxed_op.h"

// This header needs the declarations of unboxed_op.h.
#include <ATen/ops/zero_ops.h>

namespace xpurt {
namespace {

at::Tensor& zero_(c10::DispatchKeySet keys, at::Tensor& self) {
  static OpRecord& record =
      op_record(c10::Dispatcher::singleton().findSchemaOrThrow("aten::zero_", ""));
  if (host_memset(record, self)) return self;
  return UnboxedOp<at::_ops::zero_, void, at::_ops::zero_>::call(keys, self);
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("zero_", TORCH_FN(zero_));
  unboxed_ops().emplace_back("aten::zero_");
}

}  // namespace
}  // namespace xpurt
