#include "layouts/ready_calls.h"

#include <ATen/autocast_mode.h>
#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <unordered_map>

#include "layouts/block_operands.h"
#include "layouts/kept_operand.h"
#include "layouts/layout_block.h"
#include "layouts/temporary_layout.h"
#include "layouts/weak_tensor.h"
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

// What a call depends on beside its weight and its bias, its sizes and its options.
struct Conditions {
  const c10::FunctionSchema* op;
  OpsOfBlock asked;
  at::Device device;
  at::ScalarType type;
  at::ScalarType computes_in;
  bool by_onednn;
  bool has_given_layout;

  bool operator==(const Conditions&) const = default;
};

Conditions conditions_of(const OperatorHandle& op, const Tensor& input,
                         OpsOfBlock asked) {
  const auto type = autocast_type(input.device().type());
  return {&op.schema(),
          asked,
          input.device(),
          input.scalar_type(),
          type.value_or(input.scalar_type()),
          at::globalContext().userEnabledMkldnn(),
          has_given_layout(input)};
}

// The arguments of a call, which keeps no tensor alive.
class WeakArguments {
 public:
  explicit WeakArguments(std::vector<IValue> arguments)
      : arguments_(std::move(arguments)) {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!arguments_[i].isTensor()) continue;
      tensors_.emplace_back(i, arguments_[i].toTensor().getIntrusivePtr());
      arguments_[i] = IValue();
    }
  }

  // Nothing if one of the tensors is gone.
  std::optional<torch::jit::Stack> all() const {
    torch::jit::Stack found = arguments_;
    for (const auto& [at, weak] : tensors_) {
      auto tensor = weak.lock();
      if (!tensor) return std::nullopt;
      found[at] = Tensor(std::move(tensor));
    }
    return found;
  }

 private:
  std::vector<IValue> arguments_;
  std::vector<std::pair<size_t, WeakTensor>> tensors_;
};

struct ReadyCall {
  Conditions conditions;
  c10::DimVector sizes;  // of the input
  std::vector<IValue> options;
  KeptOperand weight;
  KeptOperand bias;
  OperatorHandle op;
  WeakArguments arguments;
};

using ByWeight = std::unordered_map<const TensorImpl*, std::vector<ReadyCall>>;
ByWeight& ready() {
  thread_local ByWeight found;
  return found;
}

Tensor as_given_to(const ReadyCall& call, const Tensor& input, const Tensor& weight) {
  if (!has_channels_last(weight.dim())) {
    make_plain(input);
    return input;
  }
  return in_layout(input, call.conditions.computes_in);
}

}  // namespace

bool wants_gradient(c10::ArrayRef<IValue> operands) {
  return c10::GradMode::is_enabled() &&
         std::ranges::any_of(operands, [](const IValue& each) {
           return each.isTensor() && each.toTensor().requires_grad();
         });
}

BlockCall::BlockCall(const OperatorHandle& op, c10::ArrayRef<IValue> arguments,
                     OpsOfBlock asked)
    : op_(op),
      arguments_(arguments),
      asked_(asked),
      may_be_kept_(may_be_kept()),
      before_(now) {
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
  const Conditions conditions = conditions_of(op_, input, asked_);
  const Tensor bias = operand(arguments_, 2);
  for (const ReadyCall& each : at->second) {
    if (each.conditions != conditions || each.sizes != input.sizes() ||
        !std::ranges::equal(each.options, arguments_.slice(3)) ||
        !each.weight.is(weight) || !each.bias.is(bias)) {
      continue;
    }
    std::optional<torch::jit::Stack> stack = each.arguments.all();
    if (!stack) continue;
    stack->front() = as_given_to(each, input, weight);
    each.op.callBoxed(*stack);
    Tensor result = std::move(stack->front()).toTensor();
    if (has_channels_last(weight.dim())) note_images(result, input, weight);
    return result;
  }
  return std::nullopt;
}

void BlockCall::keep(const OperatorHandle& op, std::vector<IValue> arguments) {
  const auto kept = [&](size_t at) {
    const Tensor given = operand(arguments_, at);
    const bool is_itself =
        !given.defined() || std::ranges::any_of(arguments, [&](const IValue& each) {
          return each.isTensor() && each.toTensor().is_same(given);
        });
    return KeptOperand(given, is_itself ? nullptr : watched_weight(given));
  };
  const Tensor weight = operand(arguments_, 1);
  const Tensor& input = arguments_[0].toTensor();
  ReadyCall made{conditions_of(op_, input, asked_),
                 c10::DimVector(input.sizes()),
                 arguments_.slice(3).vec(),
                 kept(1),
                 kept(2),
                 op,
                 WeakArguments(std::move(arguments))};
  auto& of_weight = ready()[weight.unsafeGetTensorImpl()];
  std::erase_if(of_weight, [&](const ReadyCall& each) {
    return !each.weight.is(weight) || !each.arguments.all();
  });
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

void forget_lost_calls() {
  std::erase_if(ready(),
                [](const auto& each) { return each.second.front().weight.is_lost(); });
}

}  // namespace xpurt
