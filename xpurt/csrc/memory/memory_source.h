// Another source of memory than the driver: functions of other code.
#pragma once

#include <cstddef>
#include <sycl/sycl.hpp>

namespace xpurt {

// The functions of a torch.xpu.XPUPluggableAllocator. A source is never freed: memory
// that came from it may return to it at any time.
struct MemorySource {
  using Allocate = void*(size_t bytes, int device_index, sycl::queue* queue);
  using Free = void(void* pointer, size_t bytes, int device_index, sycl::queue* queue);
  Allocate* allocate;  // nullptr if the source has none
  Free* free;
};

}  // namespace xpurt
