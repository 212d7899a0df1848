// A node for an op that PyTorch's lazy core has no node for.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <torch/csrc/lazy/ts_backend/ts_node.h>

#include <vector>

namespace xpurt {

// Any op that returns new tensors, whose sizes are known without their elements.
class RecordedOp final : public torch::lazy::TsNode {
 public:
  // `arguments`: of the op, whose lazy tensors are the operands; those of an op on
  // lists are its numbers, too. `shapes`: of the results.
  RecordedOp(c10::OperatorHandle op, torch::jit::Stack arguments,
             const std::vector<torch::lazy::Value>& operands,
             std::vector<torch::lazy::Shape> shapes);

  torch::lazy::TSOpVector Lower(std::shared_ptr<torch::jit::GraphFunction> function,
                                torch::lazy::TSLoweringContext* context) const override;

 private:
  const c10::OperatorHandle op_;
  // With None in the place of each tensor: an operand is held by the node.
  const torch::jit::Stack arguments_;
  std::vector<size_t> tensors_in_;  // by argument; or numbers that are operands
  std::vector<bool> is_list_;       // by argument: of these
  std::vector<bool> is_number_;     // by argument: it has such numbers
  std::vector<bool> is_given_;      // by tensor: else it is None
};

// The tensors of an argument, in their order; lists may have undefined ones.
std::vector<at::Tensor> tensors_of(const c10::IValue& argument);

// Whether the op returns a list of tensors, and nothing else.
bool returns_list(const c10::OperatorHandle& op);

// Whether a node can hold the argument: a tensor, or a value that a graph can have as a
// constant.
bool can_record(const c10::IValue& argument);

}  // namespace xpurt
