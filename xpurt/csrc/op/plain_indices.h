// Lists of indices, in the form that kernels take.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

namespace xpurt {

// Makes the list at `position` of a call's arguments plain. Masks become the indices
// where they are true. All indices get one shape, so that a kernel gets integer tensors
// of equal dimensions. An argument "values" gets the shape of the indexed part of self.
// Throws IndexError for indices that do not fit, RuntimeError for such values.
void make_indices_plain(const c10::FunctionSchema& schema, size_t position,
                        torch::jit::Stack* stack);

}  // namespace xpurt
