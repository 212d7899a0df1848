#include "lazy/traced_call.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <ATen/ops/empty_strided.h>
#include <torch/csrc/lazy/backend/backend_interface.h>
#include <torch/csrc/lazy/core/ir_builder.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>
#include <torch/csrc/lazy/core/metrics.h>
#include <torch/csrc/lazy/core/tensor.h>

#include <algorithm>
#include <bit>

#include "lazy/kernels/functional_again.h"
#include "lazy/lazy_kernels.h"
#include "lazy/list_ops.h"
#include "lazy/metrics.h"
#include "lazy/numbers.h"
#include "lazy/one_thread.h"
#include "lazy/random_call.h"
#include "lazy/real_devices.h"
#include "lazy/recorded_op.h"
#include "op/meta_call.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;
using torch::lazy::BackendDevice;
using torch::lazy::LazyTensor;

std::optional<BackendDevice> device_in(const Stack& stack, size_t first) {
  for (size_t at = first; at < stack.size(); ++at) {
    if (stack[at].isDevice() && stack[at].toDevice().is_lazy())
      return torch::lazy::atenDeviceToBackendDevice(stack[at].toDevice());
    std::optional<BackendDevice> found;
    for_each_tensor(stack[at], [&](const Tensor& each) {
      if (found) return;
      if (const auto lazy = torch::lazy::TryGetLtcTensor(each))
        found = lazy->GetDevice();
    });
    if (found) return found;
  }
  return std::nullopt;
}

// For a tensor that is not lazy. To ask for xpu is to ask for its lazy tensors.
bool asks_for_another_device(const Stack& stack, const OperatorHandle& op) {
  const bool is_xpu = lazy_device_type() == c10::DeviceType::XPU;
  return std::any_of(
      stack.end() - static_cast<ptrdiff_t>(op.schema().arguments().size()), stack.end(),
      [is_xpu](const IValue& each) {
        return each.isDevice() && !each.toDevice().is_lazy() &&
               !(is_xpu && each.toDevice().is_xpu());
      });
}

// Of those that are defined.
template <typename Change>
void change_tensors(IValue& value, const Change& change) {
  value = with_tensors(
      std::move(value),
      [&](const Tensor& each) { return each.defined() ? change(each) : each; },
      /*in_place=*/false);
}

// The results of an op that returns one list, as meta tensors.
std::vector<Tensor> meta_list(const OperatorHandle& op, const Stack& stack) {
  Stack metas(stack.end() - static_cast<ptrdiff_t>(op.schema().arguments().size()),
              stack.end());
  for (IValue& each : metas) {
    change_tensors(each, [](const Tensor& tensor) {
      return at::empty_strided(tensor.sizes(), tensor.strides(),
                               tensor.options().device(c10::DeviceType::Meta));
    });
  }
  op.callBoxed(metas);
  return metas.back().toTensorVector();
}

void check_layout(const OperatorHandle& op, const Tensor& result) {
  TORCH_CHECK_NOT_IMPLEMENTED(result.layout() == c10::kStrided, op.schema().name(),
                              " makes a tensor of the layout ", result.layout(),
                              ", and lazy tensors have the layout torch.strided alone. "
                              "Move its operands to xpu "
                              "first: x.to(\"xpu\").");
}

// The sizes and dtypes of the results; none if they depend on elements.
std::optional<std::vector<torch::lazy::Shape>> shapes_of(const OperatorHandle& op,
                                                         const Stack& stack) {
  const bool depends = op.hasTag(at::Tag::dynamic_output_shape) ||
                       op.hasTag(at::Tag::data_dependent_output);
  const bool is_list = returns_list(op);
  const auto& returns = op.schema().returns();
  const bool are_tensors = std::ranges::all_of(returns, [](const c10::Argument& each) {
    return *each.type() == *c10::TensorType::get();
  });
  const size_t first = stack.size() - op.schema().arguments().size();
  if (is_list_op(op)) {
    if (auto found = shapes_of_list_op(op, stack)) return found;
  }
  if (depends || !(are_tensors || is_list) ||
      !std::all_of(stack.begin() + static_cast<ptrdiff_t>(first), stack.end(),
                   &can_record))
    return std::nullopt;
  std::vector<torch::lazy::Shape> found;
  std::vector<Tensor> metas;
  try {
    metas = is_list ? meta_list(op, stack) : meta_call(op, stack);
  } catch (const std::exception&) {
    // The op has no meta function, or its arguments are wrong. If they are, it raises
    // on xpu what it raises for xpu tensors.
    return std::nullopt;
  }
  for (const Tensor& each : metas) {
    if (!each.defined()) return std::nullopt;
    check_layout(op, each);
    found.emplace_back(each.scalar_type(), each.sizes());
  }
  return found;
}

bool is_same(const c10::Scalar& one, const c10::Scalar& other) {
  return one.isFloatingPoint() && other.isFloatingPoint() &&
         std::bit_cast<uint64_t>(one.toDouble()) ==
             std::bit_cast<uint64_t>(other.toDouble());
}

// The numbers of an argument, as parameters of the graph. Equal ones in a row are one.
void append_numbers(const IValue& argument, const BackendDevice& device,
                    std::vector<torch::lazy::Value>& operands) {
  std::optional<c10::Scalar> last;
  for (const c10::Scalar& each : numbers_of(argument)) {
    if (last && is_same(*last, each)) {
      operands.push_back(operands.back());
      continue;
    }
    operands.push_back(
        torch::lazy::LazyGraphExecutor::Get()->GetIrValueForScalarFromCodegen(each,
                                                                              device));
    last = each;
  }
}

void record(const OperatorHandle& op, Stack* stack, const BackendDevice& device,
            std::vector<torch::lazy::Shape> shapes) {
  const size_t arguments = op.schema().arguments().size();
  Stack given(stack->end() - static_cast<ptrdiff_t>(arguments), stack->end());
  std::vector<torch::lazy::Value> operands;
  const bool has_numbers = is_list_op(op);
  const auto append = [&](const Tensor& each) {
    if (!each.defined()) return;
    operands.push_back(
        torch::lazy::GetLtcTensorOrCreateForWrappedNumber(each, device)->GetIrValue());
  };
  for (const IValue& argument : given) {
    if (has_numbers) append_numbers(argument, device, operands);
    for_each_tensor(argument, append);
  }
  const size_t results = shapes.size();
  const auto node = torch::lazy::MakeNode<RecordedOp>(op, std::move(given), operands,
                                                      std::move(shapes));
  torch::jit::drop(*stack, arguments);
  c10::List<Tensor> made;
  for (size_t at = 0; at < results; ++at) {
    made.push_back(torch::lazy::CreateAtenFromLtcTensor(
        LazyTensor::Create(torch::lazy::Value(node, at), device)));
  }
  if (returns_list(op)) return torch::jit::push(*stack, std::move(made));
  for (const Tensor& each : made) torch::jit::push(*stack, each);
}

// A tensor that no graph has read yet is on the host still.
Tensor on_real(const Tensor& tensor, c10::Device real) {
  const auto lazy = torch::lazy::TryGetLtcTensor(tensor);
  return lazy ? moved_to(lazy->ToTensor(/*detached=*/false), real) : tensor;
}

// Computes what the op reads, and the op on the device.
void run_now(const OperatorHandle& op, Stack* stack, const BackendDevice& device) {
  TORCH_LAZY_COUNTER("xpurt::run_now", 1);
  const c10::Device real = real_device(device);
  for (size_t at = stack->size() - op.schema().arguments().size(); at < stack->size();
       ++at) {
    IValue& value = (*stack)[at];
    change_tensors(value, [&](const Tensor& each) { return on_real(each, real); });
    if (value.isDevice() && value.toDevice().is_lazy()) value = real;
  }
  {
    const LazyOpsRun ops(real);
    op.callBoxed(stack);
  }
  for (size_t at = stack->size() - op.schema().returns().size(); at < stack->size();
       ++at) {
    if ((*stack)[at].isScalar() && !real.is_cpu()) count_from_device(sizeof(double));
    change_tensors((*stack)[at], [&](const Tensor& made) {
      if (made.device().type() != real.type()) return made;
      check_layout(op, made);
      return torch::lazy::CreateAtenFromLtcTensor(LazyTensor::Create(made, device));
    });
  }
}

void trace(const OperatorHandle& op, Stack* stack, const BackendDevice& device) {
  auto shapes = shapes_of(op, *stack);
  if (!shapes) return run_now(op, stack, device);
  if (!draws(op)) return record(op, stack, device, std::move(*shapes));
  // Generators of other types have no positions. Their numbers are those of the call.
  if (lazy_device_type() != c10::DeviceType::XPU) return run_now(op, stack, device);
  const OperatorHandle placed = place_draws(op, stack, device, *shapes);
  record(placed, stack, device, std::move(*shapes));
}

bool has_operands(const Stack& stack, size_t first) {
  return std::any_of(stack.begin() + static_cast<ptrdiff_t>(first), stack.end(),
                     [](const IValue& each) { return !tensors_of(each).empty(); });
}

}  // namespace

void record_call(const OperatorHandle& op, Stack* stack,
                 std::vector<torch::lazy::Shape> shapes) {
  const size_t first = stack->size() - op.schema().arguments().size();
  const BackendDevice device = device_in(*stack, first).value_or(BackendDevice());
  with_lazy_core([&] {
    record(op, stack, device, std::move(shapes));
    keep_sizes_of_results(op, *stack);
  });
}

void traced_call(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  if (called_functionalized(op, stack)) return;
  // A view beneath functionalization: within a kernel for all devices.
  TORCH_CHECK(
      !op.schema().hasAnyAliasInfo() || !register_lazy_kernels(), op.schema().name(),
      " was called on a lazy tensor within an op that was ",
      "defined after the tensor was made. Lazy tensors know the op now: call it "
      "again.");
  if (asks_for_another_device(*stack, op))
    return op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::XPU), stack);
  const size_t first = stack->size() - op.schema().arguments().size();
  const BackendDevice device = device_in(*stack, first).value_or(BackendDevice());
  // Functionalization has seen the call if there is a lazy tensor among the operands.
  const bool is_new =
      !has_operands(*stack, first) &&
      !c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::Functionalize);
  give_types_to_numbers(op, stack);
  with_lazy_core([&] {
    trace(op, stack, device);
    keep_sizes_of_results(op, *stack);
  });
  if (!is_new) return;
  for (size_t at = first; at < stack->size(); ++at) {
    change_tensors((*stack)[at], [](const Tensor& made) {
      return at::functionalization::impl::to_functional_tensor(made);
    });
  }
}

}  // namespace xpurt
