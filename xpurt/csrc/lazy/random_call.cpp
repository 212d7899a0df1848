#include "lazy/random_call.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/lazy/core/tensor.h>
#include <torch/csrc/lazy/ts_backend/ts_backend_impl.h>
#include <torch/library.h>

#include <algorithm>
#include <string>

#include "device/device.h"
#include "random/given_draws.h"
#include "random/random.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;
using torch::lazy::BackendDevice;
using torch::lazy::LazyTensor;

constexpr const char* kNamespace = "xpurt_lazy";

std::string unqualified(const OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.substr(name.find("::") + 2);
}

OperatorHandle in_namespace(const char* found, const OperatorHandle& op) {
  const std::string name = std::string(found) + "::" + unqualified(op);
  return c10::Dispatcher::singleton().findSchemaOrThrow(
      name.c_str(), op.schema().overload_name().c_str());
}

// The index of an argument in the schema.
std::optional<size_t> argument_of(const OperatorHandle& op, const char* name) {
  const auto found = op.schema().argumentIndexWithName(name);
  return found ? std::optional<size_t>(*found) : std::nullopt;
}

// Whether eager xpu draws for the call, too.
bool draws_now(const OperatorHandle& op, const Stack& stack,
               const std::vector<torch::lazy::Shape>& results) {
  const bool is_empty = std::ranges::all_of(
      results, [](const torch::lazy::Shape& each) { return each.numel() == 0; });
  if (is_empty) return false;
  for (const char* name : {"train", "training"}) {
    const auto at = argument_of(op, name);
    if (!at) continue;
    const IValue& value = stack.at(stack.size() - op.schema().arguments().size() + *at);
    if (value.isBool()) return value.toBool();
  }
  return true;
}

Tensor tensor_of(PhiloxPosition position) {
  Tensor made = at::empty({2}, at::kLong);
  made.mutable_data_ptr<int64_t>()[0] = static_cast<int64_t>(position.seed);
  made.mutable_data_ptr<int64_t>()[1] = static_cast<int64_t>(position.offset);
  return made;
}

PhiloxPosition position_in(const Tensor& tensor) {
  const Tensor on_host = tensor.cpu();
  return {static_cast<uint64_t>(on_host.const_data_ptr<int64_t>()[0]),
          static_cast<uint64_t>(on_host.const_data_ptr<int64_t>()[1])};
}

// The kernel of xpurt_lazy::f.
void run_placed(const OperatorHandle& op, Stack* stack) {
  const OperatorHandle aten = in_namespace("aten", op);
  const auto first =
      stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size());
  const PhiloxPosition begin = position_in(first->toTensor());
  stack->erase(first);
  const GivenDraws given(begin);
  aten.callBoxed(stack);
  TORCH_INTERNAL_ASSERT(given.next().offset <= begin.offset + kOffsetPerOp,
                        op.schema().name(), " drew more than once");
}

// Its meta function: that of aten::f.
void run_placed_on_meta(const OperatorHandle& op, Stack* stack) {
  stack->erase(stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size()));
  in_namespace("aten", op).callBoxed(stack);
}

bool is_random(const OperatorHandle& op) {
  return op.schema().name().starts_with("aten::") && !op.schema().is_mutable() &&
         op.hasTag(at::Tag::nondeterministic_seeded) &&
         !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         op.hasComputedKernelForDispatchKey(c10::DispatchKey::XPU);
}

}  // namespace

bool draws(const OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded);
}

OperatorHandle place_draws(const OperatorHandle& op, Stack* stack,
                           const BackendDevice& device,
                           const std::vector<torch::lazy::Shape>& results) {
  const size_t arguments = op.schema().arguments().size();
  std::optional<at::Generator> generator;
  if (const auto at = argument_of(op, "generator")) {
    IValue& value = stack->at(stack->size() - arguments + *at);
    if (!value.isNone()) generator = value.toGenerator();
    value = IValue();
  }
  const auto index = static_cast<c10::DeviceIndex>(device.ordinal());
  const std::shared_ptr<PhiloxState> state = state_of(generator, index);
  const PhiloxPosition position =
      draws_now(op, *stack, results) ? position_of_draw(*state) : state->position();
  const torch::lazy::Shape shape(at::kLong, {2});
  const auto data =
      std::make_shared<torch::lazy::TSData>(tensor_of(position), shape, device);
  stack->insert(stack->end() - static_cast<ptrdiff_t>(arguments),
                torch::lazy::CreateAtenFromLtcTensor(LazyTensor::Create(data)));
  return in_namespace(kNamespace, op);
}

void define_placed_ops() {
  static auto* const leaked = new torch::Library(torch::Library::FRAGMENT, kNamespace,
                                                 std::nullopt, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value() || !is_random(*op)) continue;
    std::vector<c10::Argument> arguments{{"position", c10::TensorType::get()}};
    const auto& given = op->schema().arguments();
    arguments.insert(arguments.end(), given.begin(), given.end());
    c10::FunctionSchema schema(kNamespace + ("::" + unqualified(*op)),
                               op->schema().overload_name(), std::move(arguments),
                               op->schema().returns());
    const std::string full = toString(schema.operator_name());
    leaked->def(std::move(schema));
    leaked->impl(
        full.c_str(),
        torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                        torch::CppFunction::makeFromBoxedFunction<&run_placed>()));
    leaked->impl(full.c_str(),
                 torch::dispatch(
                     c10::DispatchKey::Meta,
                     torch::CppFunction::makeFromBoxedFunction<&run_placed_on_meta>()));
  }
}

}  // namespace xpurt
