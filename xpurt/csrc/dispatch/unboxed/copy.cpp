#include "dispatch/unboxed/copy.h"

#include "dispatch/unboxed/unboxed_op.h"

// This header needs the declarations of unboxed_op.h.
#include <ATen/ops/copy_ops.h>

namespace xpurt {

void copy_unboxed(c10::DispatchKeySet keys, at::Tensor& self,
                  const at::Tensor& source) {
  UnboxedOp<at::_ops::copy_, void, at::_ops::copy_>::call(keys, self, source,
                                                          /*non_blocking=*/false);
}

}  // namespace xpurt
