#include "meta_call.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

#include "stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using torch::jit::Stack;

Tensor as_meta(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta()) return tensor;
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(c10::DeviceType::Meta));
}

Tensor as_zeros(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return tensor;
  return at::zeros(tensor.sizes(), tensor.options().device(c10::DeviceType::CPU));
}

template <typename Change>
IValue changed(const IValue& value, c10::DeviceType device, const Change& change) {
  if (value.isTensor()) return change(value.toTensor());
  if (value.isDevice()) return c10::Device(device);
  if (value.isTensorList()) {
    c10::List<Tensor> list;
    for (const Tensor& each : value.toTensorVector()) list.push_back(change(each));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<Tensor>> list;
    for (const IValue& each : value.toListRef()) {
      list.push_back(each.isNone() ? std::nullopt
                                   : std::make_optional(change(each.toTensor())));
    }
    return list;
  }
  return value;
}

// The arguments at the end of the stack, with other tensors.
template <typename Change>
Stack arguments_as(const c10::FunctionSchema& schema, const Stack& stack,
                   c10::DeviceType device, const Change& change) {
  Stack made;
  const size_t first = stack.size() - schema.arguments().size();
  for (size_t at = first; at < stack.size(); ++at) {
    made.push_back(changed(stack[at], device, change));
    // Whoever resizes the tensor that was given warns of it.
    if (schema.arguments()[at - first].is_out() && made.back().isTensor()) {
      made.back() = at::empty({0}, made.back().toTensor().options());
    }
  }
  return made;
}

// Some meta functions say in other words, and other types, what does not fit. So for
// operands of a moderate size PyTorch's CPU kernel is asked: it throws before it
// computes.
void throw_what_the_cpu_throws(const c10::OperatorHandle& op, const Stack& stack) {
  constexpr int64_t kMost = 1 << 20;  // elements
  int64_t elements = 0;
  const auto count = [&](const Tensor& tensor) {
    if (tensor.defined()) elements += tensor.numel();
  };
  const size_t first = stack.size() - op.schema().arguments().size();
  for (size_t at = first; at < stack.size(); ++at) for_each_tensor(stack[at], count);
  if (elements > kMost || !op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) return;
  Stack zeros = arguments_as(op.schema(), stack, c10::DeviceType::CPU,
                             [](const Tensor& tensor) { return as_zeros(tensor); });
  op.callBoxedForDispatchKey(c10::DispatchKey::CPU, zeros);
}

}  // namespace

std::vector<Tensor> meta_call(const c10::OperatorHandle& op, const Stack& stack) {
  Stack metas = arguments_as(op.schema(), stack, c10::DeviceType::Meta,
                             [](const Tensor& tensor) { return as_meta(tensor); });
  try {
    op.callBoxedForDispatchKey(c10::DispatchKey::Meta, metas);
  } catch (const std::exception&) {
    throw_what_the_cpu_throws(op, stack);
    throw;
  }
  std::vector<Tensor> results;
  for (const IValue& value : metas) {
    results.push_back(value.isTensor() ? value.toTensor() : Tensor());
  }
  return results;
}

}  // namespace xpurt
