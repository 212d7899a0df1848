// Random ops of lazy programs: they draw the numbers of their call, whenever they run.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/lazy/backend/backend_device.h>
#include <torch/csrc/lazy/core/shape.h>

#include <vector>

namespace xpurt {

// Note [Random numbers of lazy graphs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A traced op runs when a value is looked at: after ops that were called later, twice
// if two graphs need it, or not at all. A random op would draw other numbers than eager
// xpu, and two values of one graph could come from two drawings. So the position of the
// generator is taken at the call, and is a parameter of the graph. Each random op
// aten::f has a form xpurt_lazy::f with the position as its first argument: a CPU
// tensor with a seed and an offset. It is a parameter, so a graph is compiled once.

bool draws(const c10::OperatorHandle& op);

// Takes the position of a random op, and puts it before the op's arguments on the
// stack. Returns the form of the op that has them. `results`: their shapes.
c10::OperatorHandle place_draws(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                                const torch::lazy::BackendDevice& device,
                                const std::vector<torch::lazy::Shape>& results);

// Defines the forms with a position. Once.
void define_placed_ops();

}  // namespace xpurt
