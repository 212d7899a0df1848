// What the arguments of an op's schema are.
#pragma once

#include <ATen/core/function_schema.h>

namespace xpurt {

// The kind of an argument's type, of what is inside an optional.
c10::TypeKind kind_of(const c10::Argument& argument);

bool is_tensor(const c10::Argument& argument);                // or None
bool is_tensor_list(const c10::Argument& argument);           // of tensors or None
bool is_optional_tensor_list(const c10::Argument& argument);  // not Tensor[]
bool is_written(const c10::Argument& argument);
bool is_of_no_kernel(const c10::Argument& argument);  // a dtype, a device, ...

}  // namespace xpurt
