// The same bytes as a tensor of the other kind, without a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include "device/device.h"

namespace xpurt {

// A CPU tensor's bytes as a tensor of xpu:index, or an xpu tensor's as a CPU tensor:
// same sizes, strides and dtype, no gradient. Both sides see each other's writes once
// the stream was synchronized; sharing an xpu tensor waits for its pending work. The
// storage can't be resized any more.
// Throws c10::Error where the device and the host cannot read each other's memory.
at::Tensor share_with_xpu(const at::Tensor& cpu, c10::DeviceIndex index);
at::Tensor share_with_cpu(const at::Tensor& xpu);

// A tensor of xpu:index around USM that somebody else owns; `owner_release` is called
// when the last tensor on it is gone and the work that reads it is done. Throws
// ValueError if it reaches behind the end of the allocation, where the driver tells.
at::Tensor around_usm(void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                      at::ScalarType dtype, c10::DeviceIndex index,
                      std::function<void()> owner_release);

// The ordinal in whose home context `pointer` is USM, or -1. `context`, if not null, is
// the one that it is said to belong to.
c10::DeviceIndex ordinal_of_usm(const void* pointer, const sycl::context* context);

// The ordinal that has borrowed the byte at `pointer`, or -1.
c10::DeviceIndex ordinal_of_borrowed(const void* pointer) noexcept;

// Memory behind xpu tensors that xpurt's allocator did not make.
struct BorrowedMemory {
  size_t storages = 0;
  size_t bytes = 0;
};
BorrowedMemory borrowed_memory() noexcept;

}  // namespace xpurt
