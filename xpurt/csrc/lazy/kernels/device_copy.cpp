#include "lazy/kernels/device_copy.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/lazy/core/tensor.h>
#include <torch/library.h>

#include "lazy/metrics.h"
#include "lazy/one_thread.h"
#include "lazy/real_devices.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::OperatorHandle;
using torch::jit::Stack;
using torch::lazy::BackendDevice;
using torch::lazy::LazyTensor;

constexpr size_t kCopyArguments = 7, kCopied = 0, kTarget = 3;

const c10::SafeKernelFunction& locked_copy() {
  static auto* const leaked = new c10::SafeKernelFunction(
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("aten::_to_copy", "")
          .getComputedKernelForDispatchKey(c10::DispatchKey::Lazy));
  return *leaked;
}

Tensor on_other_device(LazyTensor& lazy, const BackendDevice& device) {
  const Tensor value = lazy.ToTensor(/*detached=*/false);
  const Tensor moved = value.is_cpu() ? value.clone() : value.to(real_device(device));
  const Tensor made =
      torch::lazy::CreateAtenFromLtcTensor(LazyTensor::Create(moved, device));
  keep_sizes(made);
  return made;
}

void device_copy(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  c10::IValue& self = torch::jit::peek(*stack, kCopied, kCopyArguments);
  const c10::IValue& to = torch::jit::peek(*stack, kTarget, kCopyArguments);
  const auto lazy = torch::lazy::TryGetLtcTensor(self.toTensor());
  if (lazy && to.isDevice()) {
    const c10::Device device = to.toDevice();
    const bool moves = device.is_lazy() && device.has_index() &&
                       device.index() != lazy->GetDevice().ordinal();
    with_lazy_core([&] {
      if (moves) {
        self = on_other_device(*lazy, torch::lazy::atenDeviceToBackendDevice(device));
      } else if (device.is_cpu() && !is_on_host(*lazy)) {
        count_from_device(self.toTensor().nbytes());
      }
    });
  }
  locked_copy().callBoxed(op, keys, stack);
}

}  // namespace

void register_device_copy() {
  locked_copy();
  static auto* const leaked = new torch::Library(
      torch::Library::IMPL, "aten", c10::DispatchKey::Lazy, __FILE__, __LINE__);
  leaked->impl("_to_copy", torch::CppFunction::makeFromBoxedFunction<&device_copy>());
}

}  // namespace xpurt
