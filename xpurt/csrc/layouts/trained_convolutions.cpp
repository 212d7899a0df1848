#include "layouts/trained_convolutions.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <unordered_map>

#include "layouts/differentiable.h"
#include "layouts/kept_operand.h"
#include "layouts/temporary_layout.h"
#include "stream/captured_now.h"

namespace xpurt {
namespace {

using at::ScalarType;
using at::Tensor;
using c10::IValue;

struct Conversion {
  KeptOperand weight;
  ScalarType type;
  Tensor made;
};

std::unordered_map<const c10::TensorImpl*, Conversion>& conversions() {
  thread_local std::unordered_map<const c10::TensorImpl*, Conversion> found;
  return found;
}

bool is_ordinary(const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return (tensor.is_cpu() || tensor.is_xpu()) && tensor.layout() == at::kStrided &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf) &&
         tensor.numel() > 0 && !tensor.unsafeGetTensorImpl()->is_python_dispatch() &&
         !tensor._fw_grad(/*level=*/0).defined();
}

bool has_no_element_twice(const Tensor& tensor) {
  int64_t reach = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    reach += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return reach >= tensor.numel() - 1;
}

bool is_trained(const Tensor& weight) {
  return weight.requires_grad() && weight.is_leaf() && !weight.is_inference() &&
         !weight.is_view() && has_no_element_twice(weight);
}

// The type to compute in; nothing if autocast leaves the operands alone.
std::optional<ScalarType> type_of(const Tensor& input, const Tensor& weight) {
  const auto device = input.device().type();
  if (at::autocast::is_autocast_enabled(device)) {
    return at::autocast::get_autocast_dtype(device);
  }
  if (input.scalar_type() != weight.scalar_type()) return std::nullopt;
  return input.scalar_type();
}

Tensor in_layout(const Tensor& tensor, ScalarType type) {
  // The layout of the smaller elements is changed: one op takes twice the time.
  return tensor.to(type).contiguous(channels_last(tensor.dim()));
}

Tensor converted(const Tensor& tensor, ScalarType type) {
  const at::NoGradGuard without_gradients;
  return in_layout(tensor.detach(), type);
}

// A plain input has a plain gradient.
Tensor images(const Tensor& input, ScalarType type) {
  const bool is_ours = is_temporary(input) || is_channels_last_alone(input);
  if (is_ours || !input.requires_grad()) return in_layout(input, type);
  return differentiable(input, converted(input, type));
}

Tensor weight_in_layout(const Tensor& weight, ScalarType type) {
  if (weight.scalar_type() == type && is_channels_last_alone(weight)) return weight;
  if (!at::autocast::is_autocast_cache_enabled()) return in_layout(weight, type);
  const auto at = conversions().find(weight.unsafeGetTensorImpl());
  if (at != conversions().end() && at->second.type == type &&
      at->second.weight.is(weight)) {
    return differentiable(weight, at->second.made);
  }
  Conversion made{KeptOperand(weight, /*is_converted=*/true), type,
                  converted(weight, type)};
  const Tensor result = differentiable(weight, made.made);
  if (made.weight.is_kept()) {
    conversions().insert_or_assign(weight.unsafeGetTensorImpl(), std::move(made));
  }
  return result;
}

}  // namespace

std::optional<Tensor> trained_convolution(const c10::OperatorHandle& op,
                                          c10::ArrayRef<IValue> arguments) {
  if (!c10::GradMode::is_enabled()) return std::nullopt;
  const Tensor& input = arguments[0].toTensor();
  const Tensor& weight = arguments[1].toTensor();
  if (!is_trained(weight) || !is_ordinary(input) || !is_ordinary(weight) ||
      input.device() != weight.device() || input.dim() != weight.dim() ||
      !has_channels_last(input.dim()) ||
      (input.is_xpu() && current_stream_is_captured())) {
    return std::nullopt;
  }
  const std::optional<ScalarType> type = type_of(input, weight);
  if (!type) return std::nullopt;
  const bool is_given = (!is_temporary(input) && is_channels_last_alone(input)) ||
                        is_channels_last_alone(weight);
  torch::jit::Stack stack = arguments.vec();
  stack[0] = images(input, *type);
  stack[1] = weight_in_layout(weight, *type);
  if (arguments[2].isTensor()) stack[2] = arguments[2].toTensor().to(*type);
  op.callBoxed(stack);
  Tensor result = std::move(stack[0]).toTensor();
  // PyTorch's result would be in channels last.
  if (!is_given) note_temporary(result);
  return result;
}

void forget_trained_weights() {
  conversions().clear();
}

}  // namespace xpurt
