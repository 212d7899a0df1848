// Ops on lazy tensors that functionalization did not see.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace xpurt {

// Note [Functionalization below subclasses]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Functionalization comes before Python's dispatch of a subclass. So PyTorch excludes
// it from what a subclass calls, and a DTensor calls ops on its local tensor. If that
// is lazy, what the op writes to would be lost, and its result would be no tensor of a
// program. A lazy tensor of a program is wrapped, and beneath functionalization none
// is: so a kernel of the Lazy key that finds a wrapped one calls the op once more, with
// functionalization.

// Whether it did. Else no argument is wrapped.
bool called_functionalized(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// Registers kernels that do for ops that have no other kernel of the Lazy key. Once,
// after these.
void register_functional_again();

}  // namespace xpurt
