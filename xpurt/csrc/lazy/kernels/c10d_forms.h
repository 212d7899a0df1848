// Calls of PyTorch's ops of process groups (c10d) as nodes.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>
#include <vector>

namespace xpurt {

// A call as one of xpurt_lazy::f: see Note [Collectives of lazy graphs].
struct CollectiveForm {
  // Tensors that are one operand or result together: their elements one after another.
  using Parts = std::vector<at::Tensor>;

  const char* name;  // f
  torch::jit::Stack parameters;
  std::vector<Parts> inputs, outputs;
  // Whether operands and results are lines: their sizes do not matter.
  bool are_lines = true;
};

// None: the call can't be a node, as it has a timeout of its own, a group or an
// operation without a name, or sizes that do not fit each other. Or the op waits for
// the host.
std::optional<CollectiveForm> form_of(const c10::OperatorHandle& op,
                                      const torch::jit::Stack& arguments);

// The name of a process group, as an op of _c10d_functional takes it: a string, or the
// group.
std::string name_of_group(const c10::IValue& group);

}  // namespace xpurt
