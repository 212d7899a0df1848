// The lazy core's executor of graphs, whose cache knows each graph by its whole
// structure.
#pragma once

#include <torch/csrc/lazy/core/lazy_graph_executor.h>

namespace xpurt {

// Note [Hashes of lazy graphs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The core finds the computation of a graph by a hash. That of a node is made of its op
// and of its operands' hashes, and all data of one shape have one hash. Which data is
// the operand of which node is not in it: x / (x * y) and y / (x * y) are one graph to
// the core, and the second one gets the first one's result (so in PyTorch 2.13, with
// its own backend, too). So the places of all operands are added to what is hashed.
// The device is, too: it is in the types of a graph, and in its compiled code.
class GraphExecutor final : public torch::lazy::LazyGraphExecutor {
 public:
  // See Note [Threads of lazy programs].
  void SyncLiveTensorsGraph(const torch::lazy::BackendDevice* device,
                            c10::ArrayRef<std::string> devices, bool wait) override;
  void MarkStep(const torch::lazy::BackendDevice& device) override;

 protected:
  PostOrderData RunPostOrder(const std::vector<torch::lazy::Value>& roots,
                             SyncTensorCollection* collection) override;

 private:
  // Called for each tensor of a run. See Note [Collectives of lazy graphs].
  bool ShouldSyncTensor(const torch::lazy::LazyTensorPtr& tensor) const override;
};

}  // namespace xpurt
