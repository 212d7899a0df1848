// What the dispatcher calls on the Lazy key for ops that PyTorch's lazy core has no
// node for.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/lazy/core/shape.h>

#include <vector>

namespace xpurt {

// Makes a node of the call, or runs it on xpu at once: see Note [Ops that the lazy core
// lacks]. Throws what the op throws for invalid arguments.
void traced_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack);

// Makes a node of a call with a lazy tensor, beneath functionalization, whose results
// are of these sizes and dtypes.
void record_call(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                 std::vector<torch::lazy::Shape> shapes);

}  // namespace xpurt
