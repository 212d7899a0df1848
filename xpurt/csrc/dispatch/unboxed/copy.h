// The unboxed copy_ between tensors of one ordinal.
#pragma once

#include <ATen/core/Tensor.h>

namespace xpurt {

// Copies as an unboxed op does. Requires that the host reads the ordinal's memory, and
// that its stream is idle: the native tier is likely.
void copy_unboxed(c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& source);

}  // namespace xpurt
