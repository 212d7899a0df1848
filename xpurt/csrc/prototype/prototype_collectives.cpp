// Collectives on a prototype whose process groups have no backend of their own.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include <algorithm>

#include "prototype/prototype_parts.h"

namespace xpurt {
namespace {

using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// Note [Collectives of PrivateUse1]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// c10d's ops have kernels of PyTorch for the CPU, CUDA and PrivateUse1. That of the
// last asks the process group for a backend of the device type, and raises an error if
// there is none, as with gloo. Then the op runs on the device behind. A backend that
// the vendor has registered is used as before.
class RunCollective final : public c10::OperatorKernel {
 public:
  RunCollective(const PrototypeDevice& device, c10::SafeKernelFunction kernel,
                const OperatorHandle& op)
      : device_(device),
        kernel_(std::move(kernel)),
        behind_(boxed_run_behind(device, op)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (has_backend(*stack, op.schema().arguments().size())) {
      kernel_.callBoxed(op, keys, stack);
    } else {
      behind_(op, stack);
    }
  }

 private:
  bool has_backend(const Stack& stack, size_t arguments) const {
    static const auto group =
        c10::getCustomClassType<c10::intrusive_ptr<c10d::ProcessGroup>>();
    return std::any_of(
        stack.end() - static_cast<ptrdiff_t>(arguments), stack.end(),
        [&](const IValue& each) {
          return each.isObject() && *each.type() == *group &&
                 each.toCustomClass<c10d::ProcessGroup>()->hasBackendForDeviceType(
                     device_.type());
        });
  }

  const PrototypeDevice& device_;
  const c10::SafeKernelFunction kernel_;
  const BoxedRun behind_;
};

}  // namespace

void register_collectives(const PrototypeDevice& device) {
  const c10::DispatchKey own = device.own_key(c10::DispatchKey::Dense);
  auto& dispatcher = c10::Dispatcher::singleton();
  const WithoutOverrideWarning silent;
  auto* kept =
      new torch::Library(torch::Library::IMPL, "c10d", own, __FILE__, __LINE__);
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("c10d::")) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || !op->hasKernelForDispatchKey(own)) continue;
    kept->impl(toString(name).c_str(),
               torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RunCollective>(
                   device, op->getComputedKernelForDispatchKey(own), *op)));
  }
}

}  // namespace xpurt
