// A traced graph, run op by op.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <string>
#include <vector>

namespace xpurt {

// The steps of a graph in their order. Each value is freed after its last use. Ops that
// copy a view are views here: a graph writes to none of its values.
class Steps {
 public:
  // The graph has no tuples.
  explicit Steps(torch::jit::Graph& graph);

  size_t size() const { return steps_.size(); }

  // Returns the results. `arguments` are freed after their last use, too.
  std::vector<c10::IValue> run(std::vector<c10::IValue> arguments) const;

 private:
  using Run = std::function<void(torch::jit::Stack&)>;
  struct Step {
    Run run;
    std::vector<size_t> inputs, outputs, last_used;
  };

  std::vector<Step> steps_;
  std::vector<c10::IValue> constants_;  // by value; None: not a constant
  std::vector<size_t> arguments_, results_;
};

// How a node of the graph runs: takes its inputs from the stack, and leaves its
// outputs.
std::function<void(torch::jit::Stack&)> run_of(const torch::jit::Node& node);

}  // namespace xpurt
