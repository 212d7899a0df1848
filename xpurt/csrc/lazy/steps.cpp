#include "lazy/steps.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>

#include <unordered_map>
#include <unordered_set>

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;
using Run = std::function<void(Stack&)>;

template <typename View>
Run view(const View& view) {
  return [view](Stack& stack) {
    Tensor made = view(stack);
    stack.clear();
    stack.emplace_back(std::move(made));
  };
}

// The views behind ops that return copies of them, and ops that read the memory of a
// tensor, which a lazy one has as if it were dense.
const std::unordered_map<std::string, Run>& views() {
  static const auto* const leaked = new std::unordered_map<std::string, Run>{
      {"aten::t_copy", view([](Stack& s) { return s[0].toTensor().t(); })},
      {"aten::detach_copy", view([](Stack& s) { return s[0].toTensor(); })},
      {"aten::alias_copy", view([](Stack& s) { return s[0].toTensor(); })},
      {"aten::view_copy", view([](Stack& s) {
         if (s[1].isIntList()) return s[0].toTensor().reshape(s[1].toIntVector());
         return s[0].toTensor().contiguous().view(s[1].toScalarType());
       })},
      {"aten::as_strided_copy", view([](Stack& s) {
         return s[0].toTensor().contiguous().as_strided(
             s[1].toIntVector(), s[2].toIntVector(), s[3].toOptional<int64_t>());
       })},
      {"aten::as_strided_scatter", view([](Stack& s) {
         return s[0].toTensor().contiguous().as_strided_scatter(
             s[1].toTensor(), s[2].toIntVector(), s[3].toIntVector(),
             s[4].toOptional<int64_t>());
       })},
      {"aten::_unsafe_view",
       view([](Stack& s) { return s[0].toTensor().reshape(s[1].toIntVector()); })},
      {"aten::expand_copy", view([](Stack& s) {
         return s[0].toTensor().expand(s[1].toIntVector(), s[2].toBool());
       })},
      {"aten::permute_copy",
       view([](Stack& s) { return s[0].toTensor().permute(s[1].toIntVector()); })},
      {"aten::transpose_copy", view([](Stack& s) {
         return s[0].toTensor().transpose(s[1].toInt(), s[2].toInt());
       })},
      {"aten::unsqueeze_copy",
       view([](Stack& s) { return s[0].toTensor().unsqueeze(s[1].toInt()); })},
      {"aten::select_copy", view([](Stack& s) {
         return s[0].toTensor().select(s[1].toInt(), s[2].toInt());
       })},
      {"aten::slice_copy", view([](Stack& s) {
         return s[0].toTensor().slice(s[1].toInt(), s[2].toOptional<int64_t>(),
                                      s[3].toOptional<int64_t>(), s[4].toInt());
       })},
  };
  return *leaked;
}

// A list of the node's inputs.
Run list_of(const Node& node) {
  const auto type = node.output()->type()->expectRef<c10::ListType>();
  return [element = type.getElementType()](Stack& stack) {
    c10::impl::GenericList list(element);
    for (IValue& each : stack) list.push_back(std::move(each));
    stack.clear();
    stack.emplace_back(std::move(list));
  };
}

void elements_of(Stack& stack) {
  const IValue list = std::move(stack.back());
  stack.clear();
  for (const IValue& each : list.toListRef()) stack.push_back(each);
}

}  // namespace

Run run_of(const Node& node) {
  if (node.kind() == c10::prim::ListConstruct) return list_of(node);
  if (node.kind() == c10::prim::ListUnpack) return &elements_of;
  const auto found = views().find(node.kind().toQualString());
  if (found != views().end()) return found->second;
  return [operation = node.getOperation()](Stack& stack) mutable { operation(stack); };
}

Steps::Steps(torch::jit::Graph& graph) {
  std::unordered_map<const Value*, size_t> places;
  const auto place_of = [&](const Value* value) {
    return places.try_emplace(value, places.size()).first->second;
  };
  for (const Value* each : graph.inputs()) arguments_.push_back(place_of(each));
  std::unordered_set<size_t> kept;  // constants and results
  for (const Value* each : graph.outputs()) {
    results_.push_back(place_of(each));
    kept.insert(results_.back());
  }
  for (const Node* node : graph.nodes()) {
    if (node->kind() == c10::prim::Constant) {
      const size_t place = place_of(node->output());
      constants_.resize(std::max(constants_.size(), place + 1));
      constants_[place] = *torch::jit::toIValue(node->output());
      kept.insert(place);
      continue;
    }
    Step step{.run = run_of(*node)};
    for (const Value* each : node->inputs()) step.inputs.push_back(place_of(each));
    for (const Value* each : node->outputs()) step.outputs.push_back(place_of(each));
    steps_.push_back(std::move(step));
  }
  constants_.resize(places.size());
  std::unordered_set<size_t> used = kept;
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    for (const auto* uses : {&step->inputs, &step->outputs}) {
      for (const size_t each : *uses) {
        if (used.insert(each).second) step->last_used.push_back(each);
      }
    }
  }
}

std::vector<IValue> Steps::run(std::vector<IValue> arguments) const {
  std::vector<IValue> values = constants_;
  for (size_t at = 0; at < arguments_.size(); ++at)
    values[arguments_[at]] = std::move(arguments[at]);
  Stack stack;
  for (const Step& step : steps_) {
    stack.clear();
    for (const size_t each : step.inputs) stack.push_back(values[each]);
    step.run(stack);
    TORCH_INTERNAL_ASSERT(stack.size() == step.outputs.size());
    for (size_t at = 0; at < stack.size(); ++at)
      values[step.outputs[at]] = std::move(stack[at]);
    for (const size_t each : step.last_used) values[each] = IValue();
  }
  std::vector<IValue> results;
  for (const size_t each : results_) results.push_back(values[each]);
  return results;
}

}  // namespace xpurt
