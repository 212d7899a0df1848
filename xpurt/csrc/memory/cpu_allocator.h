// PyTorch's CPU allocator, with a switch to xpu memory.
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

// True for memory that came from the device allocator.
bool is_device_memory(const c10::DataPtr& data) noexcept;

// The allocator of storage aliases. While the switch is on, resizing an alias allocates
// device memory.
c10::Allocator& switching_allocator();

}  // namespace xpurt
