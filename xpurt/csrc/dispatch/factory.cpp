// The ops that allocate xpu tensors.
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/fill.h>
#include <c10/core/TensorOptions.h>
#include <torch/library.h>

#include "device/device.h"
#include "device/device_scope.h"
#include "memory/allocator.h"

namespace xpurt {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;

c10::DeviceIndex index_of(std::optional<c10::Device> device) {
  const c10::DeviceIndex index = device ? device->index() : c10::DeviceIndex(-1);
  ordinal(index);  // throws if it does not exist
  return index < 0 ? current_device() : index;
}

void check_options(std::optional<c10::Layout> layout, std::optional<bool> pin_memory) {
  TORCH_CHECK(!pin_memory.value_or(false),
              "Only dense CPU tensors can be pinned, not xpu tensors. Make the tensor "
              "on the CPU with pin_memory=True and move it with .to(\"xpu\").");
  TORCH_CHECK_NOT_IMPLEMENTED(layout.value_or(c10::kStrided) == c10::kStrided,
                              "empty on xpu makes strided tensors; found layout ",
                              *layout);
}

// Fills uninitialized memory under torch.use_deterministic_algorithms, so that a
// program that reads it behaves the same in every run.
void fill_if_deterministic(at::Tensor& tensor) {
  const at::Context& context = at::globalContext();
  if (C10_LIKELY(!context.deterministicAlgorithms()) ||
      !context.deterministicFillUninitializedMemory()) {
    return;
  }
  at::native::fill_empty_deterministic_(tensor);
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                 std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                 std::optional<bool> pin_memory,
                 std::optional<c10::MemoryFormat> memory_format) {
  check_options(layout, pin_memory);
  const DeviceScope scope(index_of(device));
  at::Tensor made = at::detail::empty_generic(
      size, &device_allocator(), DispatchKeySet(DispatchKey::XPU),
      c10::dtype_or_default(dtype), memory_format);
  fill_if_deterministic(made);
  return made;
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                         std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout> layout,
                         std::optional<c10::Device> device,
                         std::optional<bool> pin_memory) {
  check_options(layout, pin_memory);
  const DeviceScope scope(index_of(device));
  at::Tensor made = at::detail::empty_strided_generic(size, stride, &device_allocator(),
                                                      DispatchKeySet(DispatchKey::XPU),
                                                      c10::dtype_or_default(dtype));
  fill_if_deterministic(made);
  return made;
}

// A tensor of zeros without memory, which functorch and forward-mode AD use.
at::Tensor efficient_zeros(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype,
                           std::optional<c10::Layout>,
                           std::optional<c10::Device> device, std::optional<bool>) {
  const DeviceScope scope(index_of(device));
  at::native::ZeroTensorAllocator nothing(
      c10::Device(c10::DeviceType::XPU, current_device()));
  return at::detail::empty_generic(
      size, &nothing, DispatchKeySet({DispatchKey::XPU, DispatchKey::ZeroTensor}),
      c10::dtype_or_default(dtype), std::nullopt);
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
}

}  // namespace
}  // namespace xpurt
