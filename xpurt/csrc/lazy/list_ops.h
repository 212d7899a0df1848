// Ops on lists of tensors that optimizers call.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/lazy/core/shape.h>

#include <optional>
#include <vector>

namespace xpurt {

// Note [Ops on lists of lazy tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// An optimizer writes to all parameters by one op, `_foreach_add_`. PyTorch's kernels
// take it apart, and each tensor is a call of Python, of autograd's keys, of
// functionalization and of the core. Here such an op is one node for the list. Its
// numbers are parameters of the graph as those of other ops: a learning rate that
// changes needs no other graph.
//
// Compiled code has the ops tensor by tensor, and fuses these.

// Whether the op takes lists, computes element by element, and writes to none.
bool is_list_op(const c10::OperatorHandle& op);

// The op of this kind that computes what `op`, such as `_foreach_add_`, writes.
std::optional<c10::OperatorHandle> list_op_behind(const c10::OperatorHandle& op);

// Sizes and dtypes of the results, for arguments at the end of the stack; none if they
// do not follow from the first list at a glance.
std::optional<std::vector<torch::lazy::Shape>> shapes_of_list_op(
    const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// Of an argument, in their order; none: it is no number and no list of numbers.
std::vector<c10::Scalar> numbers_of(const c10::IValue& argument);

}  // namespace xpurt
