#include "layouts/trained_convolutions.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <unordered_map>

#include "layouts/block_operands.h"
#include "layouts/kept_operand.h"
#include "layouts/temporary_layout.h"

namespace xpurt {
namespace {

using at::ScalarType;
using at::Tensor;
using c10::IValue;

// `made` is a function of the operand, for autograd.
struct Conversion {
  std::shared_ptr<WatchedWeight> watched;
  KeptOperand operand;
  ScalarType type;
  Tensor made;
};

std::unordered_map<const c10::TensorImpl*, Conversion>& conversions() {
  thread_local std::unordered_map<const c10::TensorImpl*, Conversion> found;
  return found;
}

bool is_trained(const Tensor& operand) {
  return operand.requires_grad() && operand.is_leaf() && !operand.is_inference() &&
         !operand.is_view() && operand.numel() > 0 && fills_memory(operand);
}

// convert(operand), made once per version in a block.
template <typename Convert>
Tensor kept(const Tensor& operand, ScalarType type, const Convert& convert) {
  if (!at::autocast::is_autocast_cache_enabled() || !is_trained(operand)) {
    return convert();
  }
  const auto at = conversions().find(operand.unsafeGetTensorImpl());
  if (at != conversions().end() && at->second.type == type &&
      at->second.operand.is(operand)) {
    return at->second.made;
  }
  auto watched = std::make_shared<WatchedWeight>(operand, /*outlasts_block=*/false);
  KeptOperand from(operand, watched);
  Tensor made = convert();
  conversions().insert_or_assign(
      operand.unsafeGetTensorImpl(),
      Conversion{std::move(watched), std::move(from), type, made});
  return made;
}

Tensor weight_in_layout(const Tensor& weight, ScalarType type) {
  if (weight.scalar_type() == type && is_channels_last_alone(weight)) return weight;
  return kept(weight, type, [&] { return in_layout_for_autograd(weight, type); });
}

Tensor bias_in_type(const Tensor& bias, ScalarType type) {
  if (bias.scalar_type() == type) return bias;
  return kept(bias, type, [&] { return bias.to(type); });
}

}  // namespace

std::optional<Tensor> trained_convolution(const c10::OperatorHandle& op,
                                          c10::ArrayRef<IValue> arguments) {
  if (!c10::GradMode::is_enabled()) return std::nullopt;
  const Tensor& input = arguments[0].toTensor();
  const Tensor& weight = arguments[1].toTensor();
  if (!is_trained(weight) || input.numel() == 0 || input.dim() != weight.dim() ||
      !has_channels_last(input.dim())) {
    return std::nullopt;
  }
  const std::optional<ScalarType> type = type_in_block(input, weight);
  if (!type) return std::nullopt;
  torch::jit::Stack stack = arguments.vec();
  stack[0] = images_in_layout(input, *type);
  stack[1] = weight_in_layout(weight, *type);
  if (arguments[2].isTensor()) stack[2] = bias_in_type(arguments[2].toTensor(), *type);
  op.callBoxed(stack);
  Tensor result = std::move(stack[0]).toTensor();
  note_images(result, input, weight);
  return result;
}

void forget_trained_weights() {
  conversions().clear();
}

}  // namespace xpurt
