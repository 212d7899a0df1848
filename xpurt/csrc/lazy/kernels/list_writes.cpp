#include "lazy/kernels/list_writes.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lazy/kernels/functional_values.h"
#include "lazy/list_ops.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// `_foreach_add_` by `_foreach_add`.
class WritesLists final : public c10::OperatorKernel {
 public:
  WritesLists(const OperatorHandle& op, OperatorHandle functional)
      : arguments_(op.schema().arguments().size()),
        functional_(std::move(functional)),
        before_(op.getComputedKernelForDispatchKey(DispatchKey::Functionalize)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const auto given = torch::jit::last(*stack, arguments_);
    if (!std::ranges::all_of(given, are_lazy)) {
      before_.callBoxed(op, keys, stack);
      return;
    }
    const std::vector<Tensor> written = given[0].toTensorVector();
    Stack below;
    below.reserve(arguments_);
    for (const IValue& each : given)
      below.push_back(with_tensors(each, &traced, /*in_place=*/false));
    {
      const at::AutoDispatchSkipFunctionalize skip;
      functional_.callBoxed(below);
    }
    const std::vector<Tensor> made = below.back().toTensorVector();
    torch::jit::drop(*stack, arguments_);
    for (size_t at = 0; at < written.size(); ++at)
      check_written(written[at], made.at(at));
    for (size_t at = 0; at < written.size(); ++at) write(written[at], made[at]);
  }

 private:
  // Whether all tensors of the argument are.
  static bool are_lazy(const IValue& argument) {
    if (argument.isTensor()) return is_lazy_wrapper(argument);
    return !argument.isTensorList() ||
           std::ranges::all_of(argument.toListRef(), is_lazy_wrapper);
  }

  const size_t arguments_;
  const OperatorHandle functional_;
  const c10::SafeKernelFunction before_;
};

}  // namespace

void register_list_writes() {
  static auto* const leaked = new torch::Library(
      torch::Library::IMPL, "aten", DispatchKey::Functionalize, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value()) continue;
    if (const auto functional = list_op_behind(*op)) {
      leaked->impl(toString(name).c_str(),
                   torch::CppFunction::makeFromBoxedFunctor(
                       std::make_unique<WritesLists>(*op, *functional)));
    }
  }
}

}  // namespace xpurt
