#include "meta_call.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;

Tensor as_meta(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(c10::DeviceType::Meta));
}

IValue as_meta(const IValue& value) {
  if (value.isTensor()) return as_meta(value.toTensor());
  if (value.isDevice()) return c10::Device(c10::DeviceType::Meta);
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& each : value.toTensorVector()) list.push_back(as_meta(each));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const IValue& each : value.toListRef()) {
      list.push_back(each.isNone() ? std::nullopt
                                   : std::make_optional(as_meta(each.toTensor())));
    }
    return list;
  }
  return value;
}

}  // namespace

std::vector<Tensor> meta_call(const c10::OperatorHandle& op,
                              const torch::jit::Stack& stack) {
  const c10::FunctionSchema& schema = op.schema();
  torch::jit::Stack metas;
  const size_t first = stack.size() - schema.arguments().size();
  for (size_t at = first; at < stack.size(); ++at) {
    metas.push_back(as_meta(stack[at]));
    // Whoever resizes the tensor that was given warns of it.
    if (schema.arguments()[at - first].is_out() && metas.back().isTensor()) {
      metas.back() = at::empty({0}, metas.back().toTensor().options());
    }
  }
  op.callBoxedForDispatchKey(c10::DispatchKey::Meta, metas);
  std::vector<Tensor> results;
  for (const IValue& value : metas) {
    results.push_back(value.isTensor() ? value.toTensor() : Tensor());
  }
  return results;
}

}  // namespace xpurt
