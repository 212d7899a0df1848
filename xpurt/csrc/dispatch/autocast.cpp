// Autocast of ops that are not in PyTorch's lists: see Note [Autocast of whole layers].
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include "op/attention_layers.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using c10::DeviceType;

void cast_and_run(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastXPU);
  const auto lower =
      at::autocast::get_lower_precision_fp_from_device_type(DeviceType::XPU);
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    value = with_tensors(
        std::move(value),
        [&](const at::Tensor& each) {
          return at::autocast::cached_cast(lower, each, DeviceType::XPU);
        },
        /*in_place=*/false);
  }
  op.callBoxed(stack);
}

TORCH_LIBRARY_IMPL(aten, AutocastXPU, m) {
  for (const char* name : kAttentionLayers) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&cast_and_run>());
  }
}

}  // namespace
}  // namespace xpurt
