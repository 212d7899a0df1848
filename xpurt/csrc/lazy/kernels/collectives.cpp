#include "lazy/kernels/collectives.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/slice_copy.h>
#include <ATen/ops/view_copy.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/csrc/lazy/core/metrics.h>
#include <torch/csrc/lazy/core/tensor.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "lazy/collective_call.h"
#include "lazy/kernels/c10d_forms.h"
#include "lazy/kernels/functional_values.h"
#include "lazy/real_value.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;
using torch::lazy::LazyTensorPtr;
using Tensors = std::vector<Tensor>;

LazyTensorPtr lazy_in(const Tensor& tensor) {
  return torch::lazy::TryGetLtcTensor(tensor);
}

// Of a collective that is a node: the program goes on with its results at once.
class TracedWork final : public c10d::Work {
 public:
  explicit TracedWork(Tensors results)
      : Work(-1, c10d::OpType::UNKNOWN, "traced"), results_(std::move(results)) {}

  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds) override { return true; }
  void synchronize() override {}
  Tensors result() override { return results_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
    // Without storages: no stream waits for them.
    future->markCompleted(IValue(results_),
                          std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>>{});
    return future;
  }

 private:
  const Tensors results_;
};

// All tensors of the call, or none, are those of a lazy program, on one device.
bool are_lazy(c10::ArrayRef<IValue> arguments) {
  std::optional<torch::lazy::BackendDevice> device;
  bool found = true;
  for (const IValue& argument : arguments) {
    for_each_tensor(argument, [&](const Tensor& each) {
      if (!each.defined() || !found) return;
      found = is_lazy_wrapper(each);
      if (!found) return;
      const auto& own = lazy_in(each)->GetDevice();
      found = device.value_or(own) == own;
      device = own;
    });
  }
  return found && device.has_value();
}

Tensor line_of(const Tensor& tensor) {
  return tensor.dim() == 1 ? tensor : at::view_copy(tensor, {-1});
}

Tensor operand_of(const Tensors& parts, bool is_line) {
  Tensors found;
  for (const Tensor& each : parts) {
    const Tensor value = traced(each);
    found.push_back(is_line ? line_of(value) : value);
  }
  return found.size() == 1 ? found.front() : at::cat(found);
}

// Its elements, one after another, to the parts.
void deliver(const Tensor& result, const Tensors& parts) {
  int64_t begin = 0;
  for (const Tensor& each : parts) {
    const int64_t end = begin + each.numel();
    Tensor value = result;
    {
      const at::AutoDispatchSkipFunctionalize below;
      if (parts.size() > 1) value = at::slice_copy(value, 0, begin, end);
      if (value.sizes() != each.sizes()) value = at::view_copy(value, each.sizes());
    }
    write(each, value);
    begin = end;
  }
}

void trace_form(const CollectiveForm& form) {
  Tensors results;
  {
    const at::AutoDispatchSkipFunctionalize below;
    Tensors inputs;
    for (const Tensors& each : form.inputs)
      inputs.push_back(operand_of(each, form.are_lines));
    results = trace_collective(form.name, std::move(inputs), form.parameters);
  }
  for (size_t at = 0; at < results.size(); ++at) deliver(results[at], form.outputs[at]);
}

// Ops of process groups have their outputs in the first argument.
void run_collective_now(const OperatorHandle& op, Stack* stack) {
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
  TORCH_LAZY_COUNTER("xpurt::collectives_now", 1);
  run_traced_collectives();
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

void run_collective(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  const size_t arguments = op.schema().arguments().size();
  const auto given = torch::jit::last(*stack, arguments);
  const auto form = are_lazy(given) ? form_of(op, given.vec()) : std::nullopt;
  if (!form) return run_collective_now(op, stack);
  trace_form(*form);
  Tensors outputs;
  for (const Tensors& each : form->outputs)
    outputs.insert(outputs.end(), each.begin(), each.end());
  const IValue first = given[0];
  torch::jit::drop(*stack, arguments);
  if (op.schema().returns().size() == 2) torch::jit::push(*stack, first);
  torch::jit::push(*stack, IValue(c10::static_intrusive_pointer_cast<c10d::Work>(
                               c10::make_intrusive<TracedWork>(std::move(outputs)))));
}

// An op of _c10d_functional.
class FunctionalCollective final : public c10::OperatorKernel {
 public:
  // `form`: the name f; nullptr: the op waits, or makes a tensor that will.
  FunctionalCollective(const OperatorHandle& op, const char* form)
      : form_(form),
        before_(op.getComputedKernelForDispatchKey(DispatchKey::Functionalize)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    const size_t arguments = op.schema().arguments().size();
    Stack given = torch::jit::last(*stack, arguments).vec();
    if (!are_lazy(given)) return before_.callBoxed(op, keys, stack);
    torch::jit::drop(*stack, arguments);
    if (form_ == nullptr) return torch::jit::push(*stack, given[0]);
    Tensors written;
    if (op.schema().arguments().back().name() == "out") {
      written = {given.back().toTensor()};
      given.pop_back();
    } else if (op.schema().name().ends_with('_')) {
      written = tensors_in(given[0]);
    }
    given.back() = name_of_group(given.back());
    Tensors results;
    {
      const at::AutoDispatchSkipFunctionalize below;
      Tensors inputs = tensors_in(given[0]);
      std::ranges::transform(inputs, inputs.begin(), &traced);
      given.erase(given.begin());
      results = trace_collective(form_, std::move(inputs), given);
    }
    for (size_t at = 0; at < results.size(); ++at) {
      if (written.empty()) {
        results[at] = at::functionalization::impl::to_functional_tensor(results[at]);
        continue;
      }
      TORCH_CHECK(written[at].sizes() == results[at].sizes(), op.schema().name(),
                  " makes a tensor of the sizes ", results[at].sizes(),
                  "; found one of ", written[at].sizes(), " to write to");
      write(written[at], results[at]);
      results[at] = written[at];
    }
    if (op.schema().returns()[0].type()->kind() == c10::TypeKind::ListType)
      return torch::jit::push(*stack, std::move(results));
    torch::jit::push(*stack, std::move(results.front()));
  }

 private:
  static Tensors tensors_in(const IValue& value) {
    return value.isTensor() ? Tensors{value.toTensor()} : value.toTensorVector();
  }

  const char* const form_;
  const c10::SafeKernelFunction before_;
};

const std::vector<std::pair<const char*, const char*>> kFunctional{
    {"all_reduce", "all_reduce"},
    {"all_reduce_", "all_reduce"},
    {"all_reduce_coalesced", "all_reduce"},
    {"all_reduce_coalesced_", "all_reduce"},
    {"broadcast", "broadcast"},
    {"broadcast_", "broadcast"},
    {"all_gather_into_tensor", "all_gather"},
    {"all_gather_into_tensor_coalesced", "all_gather"},
    {"all_gather_into_tensor_out", "all_gather"},
    {"reduce_scatter_tensor", "reduce_scatter"},
    {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
    {"reduce_scatter_tensor_out", "reduce_scatter"},
    {"all_to_all_single", "all_to_all"},
    {"wait_tensor", nullptr},
    {"_wrap_tensor_autograd", nullptr},
};

void register_functional() {
  static auto* const leaked =
      new torch::Library(torch::Library::IMPL, "_c10d_functional",
                         DispatchKey::Functionalize, __FILE__, __LINE__);
  for (const auto& [name, form] : kFunctional) {
    const auto op = c10::Dispatcher::singleton().findSchema(
        {c10::str("_c10d_functional::", name), ""});
    if (!op.has_value()) continue;
    leaked->impl(name, torch::CppFunction::makeFromBoxedFunctor(
                           std::make_unique<FunctionalCollective>(*op, form)));
  }
}

// The kernels of other devices: a collective of theirs comes after those that were
// traced before it.
class AfterTraced final : public c10::OperatorKernel {
 public:
  explicit AfterTraced(c10::SafeKernelFunction before) : before_(std::move(before)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    run_traced_collectives();
    before_.callBoxed(op, keys, stack);
  }

 private:
  const c10::SafeKernelFunction before_;
};

}  // namespace

void register_lazy_collectives() {
  static auto* const leaked = new torch::Library(
      torch::Library::IMPL, "c10d", DispatchKey::Functionalize, __FILE__, __LINE__);
  static auto* const others = new std::vector<c10::RegistrationHandleRAII>;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    const bool is_collective = name.name.starts_with("c10d::") && op.has_value() &&
                               op->hasKernelForDispatchKey(DispatchKey::CPU);
    if (!is_collective) continue;
    for (const DispatchKey key : {DispatchKey::CPU, DispatchKey::XPU}) {
      if (!op->hasKernelForDispatchKey(key)) continue;
      others->push_back(dispatcher.registerImpl(
          name, key,
          c10::KernelFunction::makeFromBoxedFunctor(
              std::make_unique<AfterTraced>(op->getComputedKernelForDispatchKey(key))),
          std::nullopt, nullptr, "runs after traced collectives"));
    }
    if (!op->hasKernelForDispatchKey(DispatchKey::Functionalize)) {
      leaked->impl(toString(name).c_str(),
                   torch::CppFunction::makeFromBoxedFunction<&run_collective>());
    }
  }
  register_functional();
}

}  // namespace xpurt
