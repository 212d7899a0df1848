// PyTorch's CPU allocator, with a switch that turns it to xpu memory.
#pragma once

#include <c10/core/Allocator.h>

namespace xpurt {

// Note [Results in device memory]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A native kernel makes its results through PyTorch's CPU allocator. While a
// ResultsOnDevice lives, what the calling thread asks of it comes from the current
// xpu device instead, so that a result becomes an xpu tensor by changing its
// labels, not by a copy. The DataPtr says "cpu" until then.
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

// The allocator that a storage alias is given, so that resizing it makes device
// memory while the switch is on.
c10::Allocator& switching_allocator();

}  // namespace xpurt
