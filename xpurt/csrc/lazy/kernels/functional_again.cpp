#include "lazy/kernels/functional_again.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lazy/kernels/functional_values.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

bool exchanges_data(const OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional::");
}

bool takes_tensors(const OperatorHandle& op) {
  return std::ranges::any_of(op.schema().arguments(), [](const c10::Argument& each) {
    return each.type()->isSubtypeOf(*c10::TensorType::get()) ||
           each.type()->kind() == c10::TypeKind::ListType ||
           each.type()->kind() == c10::TypeKind::OptionalType;
  });
}

class FunctionalAgain final : public c10::OperatorKernel {
 public:
  explicit FunctionalAgain(const OperatorHandle& op)
      : before_(op.getComputedKernelForDispatchKey(DispatchKey::Lazy)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (called_functionalized(op, stack)) return;
    TORCH_CHECK_NOT_IMPLEMENTED(
        !exchanges_data(op), op.schema().name(),
        " was called on a lazy tensor that an op on a tensor subclass has made without "
        "functionalization. Copy it first: x.clone().");
    before_.callBoxed(op, keys, stack);
  }

 private:
  const c10::SafeKernelFunction before_;
};

}  // namespace

bool called_functionalized(const OperatorHandle& op, Stack* stack) {
  bool found = false;
  for (const c10::IValue& each :
       torch::jit::last(*stack, op.schema().arguments().size())) {
    for_each_tensor(each, [&](const at::Tensor& tensor) {
      found = found || is_lazy_wrapper(tensor);
    });
  }
  if (!found) return false;
  const auto local = c10::impl::tls_local_dispatch_key_set();
  const c10::impl::ForceDispatchKeyGuard functionalized(
      local.included_, local.excluded_.remove(DispatchKey::Functionalize));
  op.redispatchBoxed(c10::DispatchKeySet(DispatchKey::Functionalize), stack);
  return true;
}

void register_functional_again() {
  static auto* const leaked = new std::vector<c10::RegistrationHandleRAII>;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value() || !(name.name.starts_with("aten::") || exchanges_data(*op)) ||
        !takes_tensors(*op) || op->hasKernelForDispatchKey(DispatchKey::Lazy) ||
        op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd))
      continue;
    leaked->push_back(dispatcher.registerImpl(
        name, DispatchKey::Lazy,
        c10::KernelFunction::makeFromBoxedFunctor(
            std::make_unique<FunctionalAgain>(*op)),
        std::nullopt, nullptr, "calls it with functionalization"));
  }
}

}  // namespace xpurt
