// The types of the arguments of an op's schema.
#pragma once

#include <ATen/core/function_schema.h>

#include "host/api.h"

namespace xpurt {

// The kind of an argument's type; for an optional, of the type inside.
c10::TypeKind kind_of(const c10::Argument& argument);

bool is_tensor(const c10::Argument& argument);                // also Tensor?
bool is_tensor_list(const c10::Argument& argument);           // Tensor[] or Tensor?[]
bool is_optional_tensor_list(const c10::Argument& argument);  // Tensor?[]
XPURT_API bool is_written(const c10::Argument& argument);
// A type that no kernel receives: a dtype, a device, ...
bool is_of_no_kernel(const c10::Argument& argument);
// Whether it is the size, the stride, ... of a window, with a value beyond an int:
// PyTorch's kernels refuse that.
bool is_beyond_int(const c10::Argument& argument, const c10::IValue& value);

}  // namespace xpurt
