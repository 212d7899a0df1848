#include "lazy/one_thread.h"

#include <torch/csrc/lazy/core/lazy_graph_executor.h>
#include <torch/library.h>

#include <memory>
#include <vector>

#include "host/gil.h"
#include "host/mutex.h"
#include "lazy/kernels/functional_again.h"
#include "lazy/numbers.h"
#include "lazy/opened_tensor.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using c10::OperatorHandle;

Mutex& core() {
  static auto* const leaked = new Mutex(Rank::lazy_core);
  return *leaked;
}

thread_local int depth = 0;

class Locked final : public c10::OperatorKernel {
 public:
  explicit Locked(const OperatorHandle& op)
      : before_(op.getComputedKernelForDispatchKey(c10::DispatchKey::Lazy)),
        of_tensors_(overload_of_tensors(op)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    if (called_functionalized(op, stack)) return;
    give_types_to_numbers(op, stack);
    if (of_tensors_.has_value() && is_number_made_tensor(op, stack)) {
      return of_tensors_->callBoxedForDispatchKey(c10::DispatchKey::Lazy, *stack);
    }
    with_lazy_core([&] {
      before_.callBoxed(op, keys, stack);
      keep_sizes_of_results(op, *stack);
    });
  }

 private:
  const c10::SafeKernelFunction before_;
  const std::optional<OperatorHandle> of_tensors_;
};

}  // namespace

LazyCoreInUse::LazyCoreInUse() : is_outermost_(depth == 0) {
  if (is_outermost_) {
    const WithoutGil released;
    core().lock();
  }
  ++depth;
}

LazyCoreInUse::~LazyCoreInUse() {
  --depth;
  if (is_outermost_) core().unlock();
}

void LazyCoreInUse::drop_kept_error() const noexcept {
  // Within a step this thread has the core's lock of the device itself.
  if (!is_outermost_) return;
  try {
    torch::lazy::LazyGraphExecutor::Get()->WaitDeviceOps({});
  } catch (...) {  // the exception that leaves already
  }
}

void keep_sizes(const at::Tensor& lazy) {
  using Policy = c10::TensorImpl::SizesStridesPolicy;
  c10::TensorImpl& impl = *lazy.unsafeGetTensorImpl();
  const auto set = &OpenedTensor::set_custom_sizes_strides;
  (impl.*set)(Policy::CustomSizes);  // what `resize_` returns has kept others
  lazy.sizes();
  (impl.*set)(Policy::Default);
}

void keep_sizes_of_results(const OperatorHandle& op, const torch::jit::Stack& stack) {
  for (const c10::IValue& each :
       torch::jit::last(stack, op.schema().returns().size())) {
    for_each_tensor(each, [](const at::Tensor& made) {
      if (made.defined() && made.device().is_lazy()) keep_sizes(made);
    });
  }
}

void lock_lazy_kernels() {
  static auto* const leaked = new std::vector<c10::RegistrationHandleRAII>;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value() || !op->hasKernelForDispatchKey(c10::DispatchKey::Lazy))
      continue;
    leaked->push_back(dispatcher.registerImpl(
        name, c10::DispatchKey::Lazy,
        c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Locked>(*op)),
        std::nullopt, nullptr, "holds the lock of the lazy core"));
  }
}

}  // namespace xpurt
