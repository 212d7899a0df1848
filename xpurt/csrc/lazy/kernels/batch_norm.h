// Batch norm, which writes to the running statistics though its schema does not say so.
#pragma once

#include <ATen/core/stack.h>

namespace xpurt {

// Whether a call of aten::native_batch_norm, at the end of the stack, writes to them.
bool updates_statistics(const torch::jit::Stack& stack);

// Does such a call by the functional form, whose results become the new statistics: a
// graph writes to none of its arguments.
void normalize_and_update(torch::jit::Stack* stack);

}  // namespace xpurt
