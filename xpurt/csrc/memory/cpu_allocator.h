// PyTorch's CPU allocator, with switches to xpu memory.
#pragma once

#include <c10/core/Allocator.h>

namespace xpurt {

// Note [Results in device memory]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A native kernel allocates its results with PyTorch's CPU allocator. While a
// ResultsOnDevice lives, that allocator gives the calling thread memory of the current
// xpu device instead. A result becomes an xpu tensor by a change of its device, not by
// a copy. Until then, its DataPtr has the device "cpu".
class ResultsOnDevice {
 public:
  explicit ResultsOnDevice(bool on) noexcept;
  ~ResultsOnDevice();
  ResultsOnDevice(const ResultsOnDevice&) = delete;
  ResultsOnDevice& operator=(const ResultsOnDevice&) = delete;

 private:
  bool before_;
};

// Whether a ResultsOnDevice is in force in this thread: a native kernel computes for
// xpu.
bool results_are_on_device() noexcept;

// Note [CPU tensors in device memory]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The memory of an ordinal that is one CPU device is memory of the host. A CPU tensor
// may own a block of it: its DataPtr has the device "cpu" and a deleter of its own,
// which returns the block to the cache. The block holds the mapping, as a lazy copy
// does. Storages get other memory on the CPU's usual ways: a resize, or a move into
// memory that processes share.

// Makes memory of the device allocator memory of the CPU. No queued work may use it.
c10::DataPtr as_cpu_memory(c10::DataPtr data);
// The blocks that CPU tensors own.
size_t blocks_of_cpu_tensors() noexcept;

// From now on CPU memory of at least `bytes` comes from the cache of the ordinal that
// shares the host's memory, if the mapping has one. SIZE_MAX: none does.
void cache_cpu_memory_from(size_t bytes) noexcept;
// The first ordinal that is a single CPU device working in the host's memory; -1 if
// there is none, or no mapping is installed. Never resolves a mapping.
c10::DeviceIndex ordinal_of_host() noexcept;

// True for memory that came from the device allocator, and is not a CPU tensor's.
bool is_device_memory(const c10::DataPtr& data) noexcept;

// The allocator of storage aliases. While the switch is on, resizing an alias allocates
// device memory.
c10::Allocator& switching_allocator();

}  // namespace xpurt
