// CPU and xpu tensors over the same bytes, without a copy.
#pragma once

#include <ATen/core/Tensor.h>

#include "device/device.h"

namespace xpurt {

// A tensor of xpu:index over a CPU tensor's bytes, or a CPU tensor over an xpu
// tensor's: same sizes, strides and dtype, no gradient. Writes through one tensor are
// visible through the other one after the stream was synchronized. Sharing an xpu
// tensor waits for its pending work. The storage can no longer be resized. Throws
// c10::Error if the device and the host cannot read each other's memory.
at::Tensor share_with_xpu(const at::Tensor& cpu, c10::DeviceIndex index);
at::Tensor share_with_cpu(const at::Tensor& xpu);

// Moves an xpu tensor's storage into the memory of a CPU tensor, which has as many
// bytes. All tensors over the storage use the new memory from then on. Waits for the
// storage's pending work. Throws c10::Error if other code has a pointer to the old
// memory.
void move_to_memory_of(const at::Tensor& xpu, const at::Tensor& cpu);
// The bytes of the CPU tensor whose memory an xpu tensor's storage has, by
// share_with_xpu() or move_to_memory_of(), as a tensor; undefined for other storages.
at::Tensor lender_of(const at::Tensor& xpu);

// A tensor of xpu:index over USM that other code owns. `owner_release` is called when
// the last tensor over it is freed and the work that reads it is done. Throws
// ValueError if the tensor extends beyond the end of the allocation, if the driver
// reports the allocation.
at::Tensor around_usm(void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                      at::ScalarType dtype, c10::DeviceIndex index,
                      std::function<void()> owner_release);

// The ordinal in whose home context `pointer` is USM, or -1. `context`: the context
// that the pointer's producer names, or nullptr.
c10::DeviceIndex ordinal_of_usm(const void* pointer, const sycl::context* context);

// The ordinal whose tensors borrow the byte at `pointer`, or -1.
c10::DeviceIndex ordinal_of_borrowed(const void* pointer) noexcept;

// Memory of xpu tensors that xpurt's allocator did not allocate.
struct BorrowedMemory {
  size_t storages = 0;
  size_t bytes = 0;
};
BorrowedMemory borrowed_memory() noexcept;

}  // namespace xpurt
