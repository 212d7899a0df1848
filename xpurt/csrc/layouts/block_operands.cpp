#include "layouts/block_operands.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include "layouts/differentiable.h"
#include "layouts/temporary_layout.h"
#include "stream/captured_now.h"

namespace xpurt {
namespace {

using at::ScalarType;
using at::Tensor;

bool is_of_block(const Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return (tensor.is_cpu() || tensor.is_xpu()) && tensor.layout() == at::kStrided &&
         (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf) &&
         !tensor.unsafeGetTensorImpl()->is_python_dispatch() &&
         !tensor._fw_grad(/*level=*/0).defined();
}

}  // namespace

std::optional<ScalarType> autocast_type(c10::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
}

std::optional<ScalarType> type_in_block(const Tensor& input, const Tensor& weight) {
  // What a graph records is to stay where the program knows it.
  if (!is_of_block(input) || !is_of_block(weight) ||
      input.device() != weight.device() ||
      (input.is_xpu() && current_stream_is_captured())) {
    return std::nullopt;
  }
  if (const auto type = autocast_type(input.device().type())) return type;
  if (input.scalar_type() != weight.scalar_type()) return std::nullopt;
  return input.scalar_type();
}

Tensor in_layout(const Tensor& tensor, ScalarType type) {
  // The layout of the smaller elements is changed: one op takes twice the time.
  return tensor.to(type).contiguous(channels_last(tensor.dim()));
}

Tensor in_layout_for_autograd(const Tensor& tensor, ScalarType type) {
  const Tensor made = [&] {
    const at::NoGradGuard without_gradients;
    return in_layout(tensor.detach(), type);
  }();
  return differentiable(tensor, made);
}

Tensor images_in_layout(const Tensor& input, ScalarType type) {
  const bool is_ours = is_temporary(input) || is_channels_last_alone(input);
  if (is_ours || !input.requires_grad() || !c10::GradMode::is_enabled()) {
    return in_layout(input, type);
  }
  return in_layout_for_autograd(input, type);
}

bool has_given_layout(const Tensor& tensor) {
  return !is_temporary(tensor) && is_channels_last_alone(tensor);
}

void note_images(const Tensor& result, const Tensor& input, const Tensor& weight) {
  if (has_given_layout(input) || is_channels_last_alone(weight)) return;
  note_temporary(result);
}

int64_t reach(const Tensor& tensor) {
  int64_t reach = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    reach += (tensor.size(i) - 1) * tensor.stride(i);
  }
  return reach;
}

bool fills_memory(const Tensor& tensor) {
  return reach(tensor) >= tensor.numel() - 1;
}

}  // namespace xpurt
