#include "lazy/kernels/out_checks.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lazy/kernels/functional_values.h"
#include "op/meta_call.h"
#include "op/row_spec.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

// Ops whose kernels write results while they still read operands (assert_no_overlap).
const std::unordered_set<std::string_view> kReadsLater{
    "aten::gather", "aten::index_select",  "aten::take",    "aten::cat",
    "aten::index",  "aten::masked_select", "aten::kthvalue"};

const Tensor& base_of(const Tensor& tensor) {
  return static_cast<at::functionalization::FunctionalStorageImpl&>(
             *wrapper_of(tensor).unsafe_storage().unsafeGetStorageImpl())
      .base();
}

// That of a view and of its base, or of a tensor itself.
bool share_elements(const Tensor& a, const Tensor& b) {
  if (!is_lazy_wrapper(b)) return false;
  return wrapper_of(a).storage().is_alias_of(wrapper_of(b).storage()) &&
         std::max(a.numel(), b.numel()) >= base_of(a).numel();
}

void check_memory(const OperatorHandle& op, c10::ArrayRef<IValue> operands,
                  const Tensor& out) {
  TORCH_CHECK(out.numel() <= base_of(out).numel(),
              "unsupported operation: more than one element of the written-to tensor "
              "refers to a single memory location. Please clone() the tensor before "
              "performing the operation.");
  if (!kReadsLater.contains(op.schema().name()) || out.numel() == 0) return;
  for (const IValue& operand : operands) {
    for_each_tensor(operand, [&](const Tensor& each) {
      TORCH_CHECK(!share_elements(out, each),
                  "unsupported operation: some elements of the input tensor and the "
                  "written-to tensor refer to a single memory location. Please clone() "
                  "the tensor before performing the operation.");
    });
  }
}

class ChecksOut final : public c10::OperatorKernel {
 public:
  ChecksOut(const OperatorHandle& op, OperatorHandle functional)
      : functional_(std::move(functional)),
        arguments_(op.schema().arguments().size()),
        outs_(static_cast<size_t>(std::ranges::count_if(
            op.schema().arguments(), [](const auto& each) { return each.is_out(); }))),
        before_(op.getComputedKernelForDispatchKey(DispatchKey::Functionalize)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const auto given = torch::jit::last(*stack, arguments_);
    const auto outs = given.slice(arguments_ - outs_);
    if (std::ranges::all_of(outs, &is_lazy_wrapper)) {
      for (const IValue& out : outs)
        check_memory(op, given.slice(0, arguments_ - outs_), out.toTensor());
      if (!have_types(*stack)) throw_what_the_cpu_throws(op, *stack);
    }
    before_.callBoxed(op, keys, stack);
  }

 private:
  // True also if the types are not known before the call is made.
  bool have_types(const Stack& stack) const {
    if (functional_.hasTag(at::Tag::dynamic_output_shape)) return true;
    try {
      return have_types_of_results(functional_, stack, outs_);
    } catch (const std::exception&) {  // the op itself throws its error
      return true;
    }
  }

  const OperatorHandle functional_;
  const size_t arguments_, outs_;
  const c10::SafeKernelFunction before_;
};

}  // namespace

void register_out_checks() {
  static auto* const leaked = new torch::Library(
      torch::Library::IMPL, "aten", DispatchKey::Functionalize, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  std::unordered_map<std::string, std::vector<OperatorHandle>> overloads;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    if (const auto op = dispatcher.findSchema(name))
      overloads[name.name].push_back(*op);
  }
  for (const auto& [name, all] : overloads) {
    for (const OperatorHandle& op : all) {
      const auto& arguments = op.schema().arguments();
      if (arguments.empty() || !arguments.back().is_out() ||
          !op.hasKernelForDispatchKey(DispatchKey::Functionalize))
        continue;
      const bool outs_are_tensors =
          std::ranges::all_of(arguments, [](const auto& each) {
            return !each.is_out() || *each.type() == *c10::TensorType::get();
          });
      const auto functional = Overload{op, all}.functional();
      if (!functional.has_value() || !outs_are_tensors) continue;
      leaked->impl(toString(op.operator_name()).c_str(),
                   torch::CppFunction::makeFromBoxedFunctor(
                       std::make_unique<ChecksOut>(op, *functional)));
    }
  }
}

}  // namespace xpurt
