#include "lazy/recorded_op.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/lazy/core/hash.h>

#include <algorithm>

#include "lazy/list_ops.h"
#include "lazy/real_devices.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;
using torch::lazy::hash_t;
using torch::lazy::HashCombine;

hash_t hash_of(const IValue& value) {
  if (value.isNone()) return torch::lazy::Hash(torch::lazy::kNullOpt);
  if (value.isBool()) return torch::lazy::Hash(value.toBool());
  if (value.isInt()) return torch::lazy::Hash(value.toInt());
  if (value.isDouble()) return torch::lazy::Hash(value.toDouble());
  if (value.isString()) return torch::lazy::Hash(value.toStringRef());
  if (value.isDevice()) return torch::lazy::Hash(value.toDevice());
  if (value.isList()) {
    hash_t found = torch::lazy::Hash(value.toListRef().size());
    for (const IValue& each : value.toListRef())
      found = HashCombine(found, hash_of(each));
    return found;
  }
  // The place of a tensor. One that is not given is no operand: see `clamp`, whose
  // bounds may be None.
  const bool is_given = !value.isTensor() || value.toTensor().defined();
  return is_given ? hash_t() : torch::lazy::Hash(torch::lazy::kNullOpt);
}

// By the op, its overload, its arguments that are not tensors, and which ones are.
hash_t seed_of(const c10::OperatorHandle& op, const Stack& arguments) {
  const c10::OperatorName& name = op.operator_name();
  hash_t found =
      HashCombine(torch::lazy::Hash(name.name), torch::lazy::Hash(name.overload_name));
  const bool has_operands = is_list_op(op);
  for (const IValue& each : arguments) {
    const size_t numbers = has_operands ? numbers_of(each).size() : 0;
    found =
        HashCombine(found, numbers != 0 ? torch::lazy::Hash(numbers) : hash_of(each));
  }
  return found;
}

// The arguments of the graph's node: without tensors, and with the device that the
// graph runs on.
Stack constants_of(Stack arguments) {
  for (IValue& each : arguments) {
    if (each.isTensor() || each.isTensorList() || each.isOptionalTensorList()) {
      each = IValue();
    } else if (each.isDevice() && each.toDevice().type() == c10::DeviceType::Lazy) {
      each = real_device(each.toDevice());
    }
  }
  return arguments;
}

}  // namespace

std::vector<Tensor> tensors_of(const IValue& argument) {
  if (argument.isTensor()) return {argument.toTensor()};
  if (argument.isTensorList()) return argument.toTensorVector();
  std::vector<Tensor> found;
  if (argument.isOptionalTensorList()) {
    for (const IValue& each : argument.toListRef())
      found.push_back(each.isNone() ? Tensor() : each.toTensor());
  }
  return found;
}

bool returns_list(const c10::OperatorHandle& op) {
  const auto& returns = op.schema().returns();
  return returns.size() == 1 && *returns[0].type() == *c10::ListType::ofTensors();
}

bool can_record(const IValue& argument) {
  if (argument.isTensor() || argument.isTensorList() || argument.isOptionalTensorList())
    return true;
  if (argument.isList()) {
    return std::ranges::all_of(argument.toListRef(), [](const IValue& each) {
      return each.isInt() || each.isDouble() || each.isBool();
    });
  }
  return argument.isNone() || argument.isBool() || argument.isInt() ||
         argument.isDouble() || argument.isString() || argument.isDevice() ||
         argument.isGenerator();  // a node has its position instead
}

RecordedOp::RecordedOp(c10::OperatorHandle op, Stack arguments,
                       const std::vector<torch::lazy::Value>& operands,
                       std::vector<torch::lazy::Shape> shapes)
    : TsNode(torch::lazy::OpKind(c10::Symbol::fromQualString(op.schema().name())),
             operands, std::vector(shapes), shapes.size(), seed_of(op, arguments)),
      op_(std::move(op)),
      arguments_(constants_of(arguments)) {
  const bool has_numbers = is_list_op(op_);
  for (const IValue& each : arguments) {
    const size_t before = is_given_.size();
    if (each.isTensor()) {
      is_given_.push_back(each.toTensor().defined());
    } else {
      for (const Tensor& tensor : tensors_of(each))
        is_given_.push_back(tensor.defined());
    }
    const size_t numbers = has_numbers ? numbers_of(each).size() : 0;
    is_given_.resize(is_given_.size() + numbers, true);
    tensors_in_.push_back(is_given_.size() - before);
    is_list_.push_back(each.isTensorList() || each.isOptionalTensorList() ||
                       (numbers != 0 && each.isList()));
    is_number_.push_back(numbers != 0);
  }
}

torch::lazy::TSOpVector RecordedOp::Lower(
    std::shared_ptr<torch::jit::GraphFunction> function,
    torch::lazy::TSLoweringContext* context) const {
  torch::jit::Graph& graph = *function->graph();
  const c10::FunctionSchema& schema = op_.schema();
  std::vector<torch::jit::Value*> inputs;
  size_t operand = 0, tensor = 0;
  const auto next = [&](size_t argument) -> torch::jit::Value* {
    if (!is_given_[tensor++]) return graph.insertConstant(IValue());
    torch::jit::Value* found = context->GetOutputOp(operands()[operand++]);
    if (!is_number_[argument]) return found;
    return graph.insert(c10::Symbol::fromQualString("aten::ScalarImplicit"), {found});
  };
  for (size_t at = 0; at < arguments_.size(); ++at) {
    if (tensors_in_[at] == 0 && !is_list_[at]) {
      inputs.push_back(graph.insertConstant(arguments_[at]));
    } else if (!is_list_[at]) {
      inputs.push_back(next(at));
    } else {
      std::vector<torch::jit::Value*> elements;
      for (size_t n = 0; n < tensors_in_[at]; ++n) elements.push_back(next(at));
      const auto type = schema.arguments()[at].type()->expectRef<c10::ListType>();
      inputs.push_back(
          graph.insertNode(graph.createList(type.getElementType(), elements))
              ->output());
    }
  }
  torch::jit::Node* node = graph.create(c10::Symbol::fromQualString(schema.name()),
                                        inputs, schema.returns().size());
  for (size_t at = 0; at < schema.returns().size(); ++at)
    node->outputs()[at]->setType(schema.returns()[at].type());
  graph.insertNode(node);
  if (!returns_list(op_)) return node->outputs().vec();
  return graph.insertNode(graph.createListUnpack(node->output(), num_outputs()))
      ->outputs()
      .vec();
}

}  // namespace xpurt
