// Ops that only copy or set bytes, for sizes too small for a kernel launch.
#pragma once

#include <ATen/core/Tensor.h>

#include "op/op_record.h"

namespace xpurt {

// Copies the bytes of `source` on the host, if there are few of them, both tensors are
// on one ordinal with the same dense layout and do not alias, and the native tier is
// chosen. Returns whether it did.
bool host_memcpy(OpRecord& record, const at::Tensor& self, const at::Tensor& source);

// The same for zeros.
bool host_memset(OpRecord& record, const at::Tensor& self);

}  // namespace xpurt
