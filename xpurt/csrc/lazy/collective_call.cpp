#include "lazy/collective_call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>
#include <torch/csrc/lazy/core/metrics.h>
#include <torch/csrc/lazy/core/tensor.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <numeric>
#include <string>

#include "lazy/one_thread.h"
#include "lazy/traced_call.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using Sizes = std::vector<int64_t>;
using torch::jit::Stack;
using torch::lazy::BackendDevice;

constexpr const char* kOrdered = "xpurt_lazy";
constexpr const char* kCollectives = "_c10d_functional::";

// The sizes of a result, from those of its input and the parameters.
using CollectiveSizes = Sizes (*)(Sizes input, const Stack& parameters);

struct Collective {
  const char* schema;  // of xpurt_lazy::f, without the token and the inputs
  const char* name;
  const char* of_one;   // the op for one input
  const char* of_many;  // for several; none: there is no such op
  CollectiveSizes sizes;
};

Sizes same(Sizes input, const Stack&) {
  return input;
}

Sizes gathered(Sizes input, const Stack& parameters) {
  if (input.empty()) return {parameters[0].toInt()};
  input[0] *= parameters[0].toInt();
  return input;
}

Sizes scattered(Sizes input, const Stack& parameters) {
  input.at(0) /= parameters[1].toInt();
  return input;
}

Sizes exchanged(Sizes input, const Stack& parameters) {
  const Sizes received = parameters[0].toIntVector();
  input.at(0) = std::accumulate(received.begin(), received.end(), int64_t{0});
  return input;
}

constexpr std::array kCollectiveForms{
    Collective{"str reduce_op, str group_name", "all_reduce", "all_reduce",
               "all_reduce_coalesced", &same},
    Collective{"int src, str group_name", "broadcast", "broadcast", nullptr, &same},
    Collective{"int group_size, str group_name", "all_gather", "all_gather_into_tensor",
               "all_gather_into_tensor_coalesced", &gathered},
    Collective{"str reduce_op, int group_size, str group_name", "reduce_scatter",
               "reduce_scatter_tensor", "reduce_scatter_tensor_coalesced", &scattered},
    Collective{"int[] received, int[] sent, str group_name", "all_to_all",
               "all_to_all_single", nullptr, &exchanged},
};

OperatorHandle op_named(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "");
}

Tensor token_beside(const Tensor& result) {
  return at::empty({0}, result.options().dtype(at::kByte));
}

// Takes the arguments of xpurt_lazy::f from the stack: returns the inputs, and leaves
// the parameters.
std::vector<Tensor> take_inputs(const OperatorHandle& op, Stack* stack) {
  const auto first =
      stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size());
  std::vector<Tensor> inputs = (first + 1)->toTensorVector();
  stack->erase(first, first + 2);
  return inputs;
}

class RunForm final : public c10::OperatorKernel {
 public:
  explicit RunForm(const Collective& form) : form_(form) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    std::vector<Tensor> inputs = take_inputs(op, stack);
    for (Tensor& each : inputs) each = each.contiguous();
    const bool is_one = inputs.size() == 1;
    const IValue first = is_one ? IValue(inputs[0]) : IValue(inputs);
    const size_t parameters = op.schema().arguments().size() - 2;
    stack->insert(stack->end() - static_cast<ptrdiff_t>(parameters), first);
    static const OperatorHandle wait =
        op_named(std::string(kCollectives) + "wait_tensor");
    op_named(std::string(kCollectives) + (is_one ? form_.of_one : form_.of_many))
        .callBoxed(stack);
    const IValue made = torch::jit::pop(*stack);
    std::vector<Tensor> results =
        is_one ? std::vector<Tensor>{made.toTensor()} : made.toTensorVector();
    for (Tensor& each : results) {
      Stack given{each};
      wait.callBoxed(given);
      each = given.back().toTensor();
    }
    results.push_back(token_beside(inputs[0]));
    torch::jit::push(*stack, std::move(results));
  }

 private:
  const Collective& form_;
};

class SizeForm final : public c10::OperatorKernel {
 public:
  explicit SizeForm(const Collective& form) : form_(form) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) const {
    const std::vector<Tensor> inputs = take_inputs(op, stack);
    const Stack parameters =
        torch::jit::pop(*stack, op.schema().arguments().size() - 2);
    std::vector<Tensor> results;
    for (const Tensor& each : inputs) {
      results.push_back(
          at::empty(form_.sizes(each.sizes().vec(), parameters), each.options()));
    }
    results.push_back(token_beside(inputs[0]));
    torch::jit::push(*stack, std::move(results));
  }

 private:
  const Collective& form_;
};

// Of the collectives that did not run: the lock of the lazy core is held by who reads
// or changes it.
struct TracedOnes {
  std::atomic<bool> any{false};
  std::optional<BackendDevice> device;
  Tensor token;  // the last one
};

TracedOnes& traced_ones() {
  static auto* const leaked = new TracedOnes;
  return *leaked;
}

}  // namespace

std::vector<Tensor> trace_collective(const char* form, std::vector<Tensor> inputs,
                                     const Stack& parameters) {
  return with_lazy_core([&] {
    TORCH_LAZY_COUNTER("xpurt::collectives_traced", 1);
    TracedOnes& before = traced_ones();
    const BackendDevice device =
        torch::lazy::TryGetLtcTensor(inputs.at(0))->GetDevice();
    if (before.any && before.device != device) run_traced_collectives();
    Stack stack{before.token.defined() ? IValue(before.token) : IValue(),
                std::move(inputs)};
    stack.insert(stack.end(), parameters.begin(), parameters.end());
    traced_call(op_named(std::string(kOrdered) + "::" + form), {}, &stack);
    std::vector<Tensor> results = stack.back().toTensorVector();
    before.token = results.back();
    before.device = device;
    before.any = true;
    results.pop_back();
    return results;
  });
}

bool has_traced_collectives(const BackendDevice& device) {
  const TracedOnes& found = traced_ones();
  return found.any && found.device == device;
}

void run_traced_collectives() {
  if (!traced_ones().any) return;
  with_lazy_core([] {
    if (!traced_ones().any) return;  // another thread ran them
    const BackendDevice device = *traced_ones().device;
    torch::lazy::LazyGraphExecutor::Get()->SyncLiveTensorsGraph(&device, {},
                                                                /*wait=*/true);
  });
}

CollectivesRun::CollectivesRun(const BackendDevice* device) {
  TracedOnes& found = traced_ones();
  if (!found.any || (device != nullptr && found.device != *device)) return;
  token_ = std::exchange(found.token, Tensor());
  found.any = false;
}

void define_collective_forms() {
  static auto* const leaked = new torch::Library(torch::Library::FRAGMENT, kOrdered,
                                                 std::nullopt, __FILE__, __LINE__);
  for (const Collective& form : kCollectiveForms) {
    leaked->def(c10::str(form.name, "(Tensor? token, Tensor[] inputs, ", form.schema,
                         ") -> Tensor[]")
                    .c_str());
    leaked->impl(form.name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                                            torch::CppFunction::makeFromBoxedFunctor(
                                                std::make_unique<RunForm>(form))));
    leaked->impl(form.name, torch::dispatch(c10::DispatchKey::Meta,
                                            torch::CppFunction::makeFromBoxedFunctor(
                                                std::make_unique<SizeForm>(form))));
  }
}

}  // namespace xpurt
