#include "lazy/graph_executor.h"

#include <unordered_map>

#include "lazy/collective_call.h"
#include "lazy/one_thread.h"

namespace xpurt {

void GraphExecutor::SyncLiveTensorsGraph(const torch::lazy::BackendDevice* device,
                                         c10::ArrayRef<std::string> devices,
                                         bool wait) {
  with_lazy_core([&] {
    const CollectivesRun collectives(device);
    LazyGraphExecutor::SyncLiveTensorsGraph(device, devices, wait);
  });
}

void GraphExecutor::MarkStep(const torch::lazy::BackendDevice& device) {
  with_lazy_core([&] { LazyGraphExecutor::MarkStep(device); });
}

GraphExecutor::PostOrderData GraphExecutor::RunPostOrder(
    const std::vector<torch::lazy::Value>& roots, SyncTensorCollection* collection) {
  PostOrderData found = LazyGraphExecutor::RunPostOrder(roots, collection);
  std::unordered_map<const torch::lazy::Node*, size_t> places;
  places.reserve(found.post_order.size());
  const auto add = [&](const torch::lazy::Node* node, size_t result) {
    const auto place = places.find(node);
    found.parameter_sequence.push_back(place == places.end() ? places.size()
                                                             : place->second);
    found.parameter_sequence.push_back(result);
  };
  for (const torch::lazy::Node* node : found.post_order) {
    for (const torch::lazy::Output& operand : node->operands())
      add(operand.node, operand.index);
    places.emplace(node, places.size());
  }
  for (const torch::lazy::Value& root : roots) add(root.node.get(), root.index);
  found.parameter_sequence.push_back(static_cast<size_t>(collection->device.type()));
  found.parameter_sequence.push_back(static_cast<size_t>(collection->device.ordinal()));
  return found;
}

bool GraphExecutor::ShouldSyncTensor(const torch::lazy::LazyTensorPtr& tensor) const {
  if (has_traced_collectives(tensor->GetDevice())) {
    run_traced_collectives();
    if (tensor->CurrentDataHandle() != nullptr) return false;
  }
  return tensor->GetIrValue()->op().ToString() != "lazy_tensors::not_supported";
}

}  // namespace xpurt
