// Collectives of lazy programs: nodes that run in the order of their calls.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <torch/csrc/lazy/backend/backend_device.h>

#include <vector>

namespace xpurt {

// Note [Collectives of lazy graphs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A collective waits for other processes, so all of them have to run theirs in one
// order, each once, and those whose results nobody reads, too. A graph has its nodes in
// any order that its operands allow, and a node of which nobody reads the result is
// not in it. So each collective is a node with a token (as in PyTorch/XLA): an operand
// that the collective before it returned, and a result, for the one after it. The last
// token is a lazy tensor that lives until a step has run it.
//
// The order is that of the program, over all process groups. One collective is one op
// xpurt_lazy::f, whose first argument is the token and whose last result is the new
// one. It calls _c10d_functional::f and waits for it. The compiler takes it as it is:
// the process group's backend of the device runs it, compiled or not, so that ranks
// that are in different forms (Note [When a graph is compiled]) understand each other.
//
// Two graphs that need the result of one collective would run it twice. So while there
// are collectives that did not run, reading any value is a step, which runs all that
// was traced. So does what exchanges data when it is called: a collective on tensors
// that are not lazy, a barrier, and the end of a process group. Ranks may read
// different values, and so cut their programs in different places.

// Records it for lazy tensors beneath functionalization, which are on one device.
// `form`: the name f. `parameters`: the arguments of xpurt_lazy::f after its inputs.
// Returns the results.
std::vector<at::Tensor> trace_collective(const char* form,
                                         std::vector<at::Tensor> inputs,
                                         const torch::jit::Stack& parameters);

// Whether a collective was traced on the device, and did not run.
bool has_traced_collectives(const torch::lazy::BackendDevice& device);

// Runs those that were traced, with all else on their device.
void run_traced_collectives();

// While a step takes what was traced on the device; none: on all devices.
class CollectivesRun {
 public:
  // Called with the lock of the lazy core.
  explicit CollectivesRun(const torch::lazy::BackendDevice* device);

 private:
  at::Tensor token_;  // lives until the step has run it
};

// Defines xpurt_lazy::f. Once.
void define_collective_forms();

}  // namespace xpurt
