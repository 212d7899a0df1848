#include "layouts/ready_calls.h"

#include <ATen/autocast_mode.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_map>

#include "layouts/kept_operand.h"
#include "layouts/layout_block.h"
#include "layouts/temporary_layout.h"
#include "stream/captured_now.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using c10::OperatorHandle;
using c10::TensorImpl;

constexpr size_t kMostPerWeight = 8;

thread_local BlockCall* now = nullptr;

// The weight, or the bias; undefined if there is none.
Tensor operand(c10::ArrayRef<IValue> arguments, size_t at) {
  return arguments[at].isTensor() ? arguments[at].toTensor() : Tensor();
}

// What a call depends on beside its weight and its bias.
struct Conditions {
  const c10::FunctionSchema* op;
  at::Device device;
  at::ScalarType type;
  at::ScalarType computes_in;
  bool by_onednn;
  bool is_channels_last;  // and no temporary
  std::vector<int64_t> sizes;
  std::vector<IValue> options;

  bool operator==(const Conditions&) const = default;
};

Conditions conditions_of(const OperatorHandle& op, c10::ArrayRef<IValue> arguments) {
  const Tensor& input = arguments[0].toTensor();
  const auto device = input.device().type();
  return {&op.schema(),
          input.device(),
          input.scalar_type(),
          at::autocast::is_autocast_enabled(device)
              ? at::autocast::get_autocast_dtype(device)
              : input.scalar_type(),
          at::globalContext().userEnabledMkldnn(),
          !is_temporary(input) && is_channels_last_alone(input),
          input.sizes().vec(),
          arguments.slice(3).vec()};
}

struct ReadyCall {
  Conditions conditions;
  KeptOperand weight;
  KeptOperand bias;
  OperatorHandle op;
  std::vector<IValue> arguments;
};

using ByWeight = std::unordered_map<const TensorImpl*, std::vector<ReadyCall>>;
ByWeight& ready() {
  thread_local ByWeight found;
  return found;
}

Tensor as_given_to(const ReadyCall& call, const Tensor& input) {
  if (!has_channels_last(operand(call.arguments, 1).dim())) {
    make_plain(input);
    return input;
  }
  return input.to(call.conditions.computes_in).contiguous(channels_last(input.dim()));
}

}  // namespace

bool wants_gradient(c10::ArrayRef<IValue> operands) {
  return c10::GradMode::is_enabled() &&
         std::ranges::any_of(operands, [](const IValue& each) {
           return each.isTensor() && each.toTensor().requires_grad();
         });
}

BlockCall::BlockCall(const OperatorHandle& op, c10::ArrayRef<IValue> arguments)
    : op_(op), arguments_(arguments), may_be_kept_(may_be_kept()), before_(now) {
  now = this;
}

BlockCall::~BlockCall() {
  now = before_;
}

BlockCall* BlockCall::current() {
  return now != nullptr && now->may_be_kept_ ? now : nullptr;
}

bool BlockCall::may_be_kept() const {
  if (!at::autocast::is_autocast_cache_enabled() || tensors_are_transformed() ||
      wants_gradient(arguments_.slice(0, 3))) {
    return false;
  }
  for (const size_t i : {0, 1, 2}) {
    const Tensor each = operand(arguments_, i);
    if (!each.defined()) continue;
    if (each.layout() != at::kStrided || (i > 0 && each.is_inference()) ||
        each.unsafeGetTensorImpl()->is_python_dispatch() ||
        each._fw_grad(/*level=*/0).defined()) {
      return false;
    }
  }
  return !arguments_[0].toTensor().is_xpu() || !current_stream_is_captured();
}

std::optional<Tensor> BlockCall::ready_result() const {
  if (!may_be_kept_) return std::nullopt;
  const Tensor& input = arguments_[0].toTensor();
  const Tensor weight = operand(arguments_, 1);
  const auto at = ready().find(weight.unsafeGetTensorImpl());
  if (at == ready().end()) return std::nullopt;
  const Conditions conditions = conditions_of(op_, arguments_);
  const Tensor bias = operand(arguments_, 2);
  for (const ReadyCall& each : at->second) {
    if (!(each.conditions == conditions && each.weight.is(weight) &&
          each.bias.is(bias))) {
      continue;
    }
    torch::jit::Stack stack = each.arguments;
    stack[0] = as_given_to(each, input);
    each.op.callBoxed(stack);
    Tensor result = stack[0].toTensor();
    const bool given = conditions.is_channels_last || is_channels_last_alone(weight);
    if (has_channels_last(weight.dim()) && !given) note_temporary(result);
    return result;
  }
  return std::nullopt;
}

void BlockCall::keep(const OperatorHandle& op, std::vector<IValue> arguments) {
  const auto converted = [&](size_t at) {
    const Tensor given = operand(arguments_, at);
    return given.defined() && std::ranges::none_of(arguments, [&](const IValue& each) {
             return each.isTensor() && each.toTensor().is_same(given);
           });
  };
  const Tensor weight = operand(arguments_, 1);
  ReadyCall made{conditions_of(op_, arguments_), KeptOperand(weight, converted(1)),
                 KeptOperand(operand(arguments_, 2), converted(2)), op,
                 std::move(arguments)};
  if (!made.weight.is_kept() || !made.bias.is_kept()) return;
  auto& of_weight = ready()[weight.unsafeGetTensorImpl()];
  if (of_weight.size() == kMostPerWeight) of_weight.clear();
  of_weight.push_back(std::move(made));
}

void BlockCall::keep_itself(const Tensor& weight, const IValue& bias) {
  std::vector<IValue> arguments = arguments_.vec();
  arguments[0] = IValue();
  arguments[1] = weight;
  arguments[2] = bias;
  keep(op_, std::move(arguments));
}

void forget_ready_calls() {
  ready().clear();
}

}  // namespace xpurt
