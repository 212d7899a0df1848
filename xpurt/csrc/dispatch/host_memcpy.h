// Ops that only move or set bytes, on so few that a kernel is not worth its call.
#pragma once

#include <ATen/core/Tensor.h>

#include "op/op_record.h"

namespace xpurt {

// Copies the bytes of `source` on the host, if they are few, both tensors are of one
// ordinal and one dense layout, share nothing, and nobody asks for a kernel.
bool host_memcpy(OpRecord& record, const at::Tensor& self, const at::Tensor& source);

// The same with zeros.
bool host_memset(OpRecord& record, const at::Tensor& self);

}  // namespace xpurt
