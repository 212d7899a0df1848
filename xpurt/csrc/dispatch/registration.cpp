#include "dispatch/registration.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dispatch/dispatch.h"
#include "dispatch/special_layouts.h"

namespace xpurt {
namespace {

using c10::DispatchKey;

using Run = void(OpRecord& record, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Note [Registered twice]
// ~~~~~~~~~~~~~~~~~~~~~~~
// A fallback alone would run every op without a kernel of its own. It is not enough: an
// op that has a composite kernel besides its CPU kernel never reaches a fallback. A
// structured op then runs its composite kernel, which allocates and calls the out form:
// a detour of half a microsecond. For some ops the composite is another, slower
// algorithm. So each op with a CPU kernel is registered individually. The fallback runs
// ops that are defined later, in other libraries. Those among them that have a
// composite kernel, too, are registered by prefer_cpu_kernel().
template <Run& run>
struct RunOp final : c10::OperatorKernel {
  explicit RunOp(OpRecord& record) : record_(record) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    run(record_, keys, stack);
  }

 private:
  OpRecord& record_;
};

template <Run& run>
void run_any(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
             torch::jit::Stack* stack) {
  run(op_record(op), keys, stack);
}

constexpr Fallbacks kFallbacks{&run_any<run_op>, &run_any<run_special_op>};

template <Run& run>
void register_fallback(DispatchKey key) {
  auto* const leaked =
      new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  leaked->fallback(torch::CppFunction::makeFromBoxedFunction<&run_any<run>>());
}

// The keys of xpu, with the CPU's key for the same layout.
constexpr std::pair<DispatchKey, DispatchKey> kLayoutKeys[] = {
    {DispatchKey::XPU, DispatchKey::CPU},
    {DispatchKey::SparseXPU, DispatchKey::SparseCPU},
    {DispatchKey::SparseCsrXPU, DispatchKey::SparseCsrCPU},
    {DispatchKey::QuantizedXPU, DispatchKey::QuantizedCPU},
    {DispatchKey::NestedTensorXPU, DispatchKey::NestedTensorCPU},
};

c10::KernelFunction run_of(DispatchKey key, OpRecord& record) {
  if (key == DispatchKey::XPU) {
    return c10::KernelFunction::makeFromBoxedFunctor(
        std::make_unique<RunOp<run_op>>(record));
  }
  return c10::KernelFunction::makeFromBoxedFunctor(
      std::make_unique<RunOp<run_special_op>>(record));
}

std::vector<c10::OperatorHandle> aten_ops() {
  auto& dispatcher = c10::Dispatcher::singleton();
  std::vector<c10::OperatorHandle> found;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    if (const auto op = dispatcher.findSchema(name)) found.push_back(*op);
  }
  return found;
}

}  // namespace

const Fallbacks& fallbacks() {
  return kFallbacks;
}

void register_fallbacks() {
  register_fallback<run_op>(kStridedKey);
  for (const DispatchKey key : kSpecialKeys) register_fallback<run_special_op>(key);
}

// torch::Library parses the name of each op again, which takes most of the time.
void register_remaining_ops() {
  auto& dispatcher = c10::Dispatcher::singleton();
  // Leaked: registered until the process ends.
  auto& kept = *new std::vector<c10::RegistrationHandleRAII>;
  for (const c10::OperatorHandle& op : aten_ops()) {
    for (const auto& [ours, cpu] : kLayoutKeys) {
      if (op.hasKernelForDispatchKey(ours)) continue;
      const bool is_composite = ours == DispatchKey::XPU && has_host_kernel(op);
      if (!is_composite && !op.hasKernelForDispatchKey(cpu)) continue;
      kept.push_back(dispatcher.registerImpl(op.operator_name(), ours,
                                             run_of(ours, op_record(op)), std::nullopt,
                                             nullptr, "registered by xpurt"));
    }
  }
  let_nested_kernels_be_reached();
}

bool prefer_cpu_kernel(const std::string& name, const std::string& overload) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  const bool is_wanted = op && op->hasKernelForDispatchKey(DispatchKey::CPU) &&
                         !op->hasKernelForDispatchKey(DispatchKey::XPU);
  if (!is_wanted) return false;
  const std::string space(*op->operator_name().getNamespace());
  auto* kept = new torch::Library(torch::Library::IMPL, space, DispatchKey::XPU,
                                  __FILE__, __LINE__);
  kept->impl(toString(op->operator_name()).c_str(),
             torch::CppFunction::makeFromBoxedFunction<&run_any<run_op>>());
  return true;
}

}  // namespace xpurt
