// Numbers of a program among the operands of lazy ops.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace xpurt {

// Note [Numbers beside lazy tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Beside tensors of integers 0.1 is a number of float32, and 2j beside float32 one of
// complex64. To the lazy core a number is a tensor of float64 or complex128 without
// dimensions. Beside integers the result has its type, which eager mode does not give.
// So numbers get the type of the result first, if no other operand is of its kind. An
// op of a tensor and a number, such as pow.Tensor_Scalar, is then that of two tensors:
// the core lowers both to the same.

// Called with the arguments of the op at the end of the stack.
void give_types_to_numbers(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// The overload that takes a tensor where this one takes a number; none if there is
// none.
std::optional<c10::OperatorHandle> overload_of_tensors(const c10::OperatorHandle& op);

// Makes the number that follows a tensor on the stack a tensor, if it needs a type.
bool is_number_made_tensor(const c10::OperatorHandle& op, torch::jit::Stack* stack);

}  // namespace xpurt
