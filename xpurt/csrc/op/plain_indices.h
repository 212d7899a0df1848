// Lists of indices, as kernels want them.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

namespace xpurt {

// Makes the list at `position` of a call's arguments plain: masks become the places
// where they are true, and all indices get one shape, so that a kernel sees integers
// of as many dimensions. An argument "values" gets the shape of what is indexed.
// Raises IndexError for indices that do not fit, RuntimeError for such values.
void make_indices_plain(const c10::FunctionSchema& schema, size_t position,
                        torch::jit::Stack* stack);

}  // namespace xpurt
