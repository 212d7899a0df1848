#include "lazy/kernels/mixed_copy.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/lazy/core/tensor.h>
#include <torch/library.h>

#include "lazy/metrics.h"
#include "lazy/one_thread.h"

namespace xpurt {
namespace {

using at::Tensor;
using at::functionalization::impl::isFunctionalTensor;
using c10::OperatorHandle;
using torch::jit::Stack;

// PyTorch's kernel, which the one here takes the place of.
const c10::SafeKernelFunction& stock_copy() {
  static auto* const leaked = new c10::SafeKernelFunction(
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("aten::copy_", "")
          .getComputedKernelForDispatchKey(c10::DispatchKey::Functionalize));
  return *leaked;
}

void mixed_copy(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  const Tensor self = torch::jit::peek(*stack, 0, 3).toTensor();
  c10::IValue& source = torch::jit::peek(*stack, 1, 3);
  const Tensor from = source.toTensor();
  const auto lazy_self = torch::lazy::TryGetLtcTensor(self);
  const auto lazy_from = torch::lazy::TryGetLtcTensor(from);
  if (lazy_from && !lazy_self) {
    at::functionalization::impl::sync(from);
    // After the writes, which may have exchanged the tensor.
    source = with_lazy_core([&] {
      torch::lazy::LazyTensor& written = *torch::lazy::TryGetLtcTensor(from);
      if (self.is_cpu() && !is_on_host(written)) count_from_device(from.nbytes());
      return written.ToTensor(/*detached=*/false);
    });
    return op.callBoxed(stack);
  }
  if (lazy_self && !lazy_from && !isFunctionalTensor(from)) {
    // A copy: the program may change the source before the graph runs.
    source = at::functionalization::impl::to_functional_tensor(
        torch::lazy::CreateAtenFromLtcTensor(torch::lazy::LazyTensor::Create(
            from.detach().clone(), lazy_self->GetDevice())));
  }
  stock_copy().callBoxed(op, keys, stack);
}

}  // namespace

void register_mixed_copy() {
  stock_copy();
  static auto* const leaked =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::Functionalize,
                         __FILE__, __LINE__);
  leaked->impl("copy_", torch::CppFunction::makeFromBoxedFunction<&mixed_copy>());
}

}  // namespace xpurt
