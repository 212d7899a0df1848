#include "lazy/kernels/collectives.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/csrc/lazy/core/tensor.h>
#include <torch/library.h>

#include <utility>
#include <vector>

#include "lazy/real_value.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;
using torch::lazy::LazyTensorPtr;

LazyTensorPtr lazy_in(const Tensor& tensor) {
  return torch::lazy::TryGetLtcTensor(tensor);
}

// Ops of process groups have their outputs in the first argument.
void run_collective(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const size_t first = stack->size() - op.schema().arguments().size();
  std::vector<std::pair<Tensor, Tensor>> written;  // lazy, real
  c10::OptionalDeviceGuard guard;
  for (size_t at = first; at < stack->size(); ++at) {
    (*stack)[at] = with_tensors(
        (*stack)[at],
        [&](const Tensor& each) {
          if (!each.defined()) return each;
          if (!lazy_in(each)) {
            at::functionalization::impl::sync(each);
            return at::functionalization::impl::from_functional_tensor(each, false);
          }
          const Tensor made = real_value(each).clone();
          if (!made.is_cpu()) guard.reset_device(made.device());
          if (at == first) written.emplace_back(each, made);
          return made;
        },
        /*in_place=*/false);
  }
  if (written.empty()) {
    const at::AutoDispatchSkipFunctionalize below;
    return op.callBoxed(stack);
  }
  op.callBoxed(stack);
  for (size_t at = stack->size() - op.schema().returns().size(); at < stack->size();
       ++at) {
    const IValue& returned = (*stack)[at];
    if (returned.isCustomClass()) returned.toCustomClass<c10d::Work>()->wait();
  }
  for (const auto& [tensor, real] : written) {
    const Tensor made = torch::lazy::CreateAtenFromLtcTensor(
        torch::lazy::LazyTensor::Create(real, lazy_in(tensor)->GetDevice()));
    const bool is_functional = at::functionalization::impl::isFunctionalTensor(tensor);
    tensor.copy_(is_functional ? at::functionalization::impl::to_functional_tensor(made)
                               : made);
  }
}

}  // namespace

void register_lazy_collectives() {
  static auto* const leaked =
      new torch::Library(torch::Library::IMPL, "c10d", c10::DispatchKey::Functionalize,
                         __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    const bool is_collective =
        name.name.starts_with("c10d::") && op.has_value() &&
        op->hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
        !op->hasKernelForDispatchKey(c10::DispatchKey::Functionalize);
    if (is_collective) {
      leaked->impl(toString(name).c_str(),
                   torch::CppFunction::makeFromBoxedFunction<&run_collective>());
    }
  }
}

}  // namespace xpurt
