// Where memory comes from if not from the driver: functions of somebody else.
#pragma once

#include <cstddef>
#include <sycl/sycl.hpp>

namespace xpurt {

// The functions of a torch.xpu.XPUPluggableAllocator. A source is never freed: memory
// that came from it goes back to it, whenever that is.
struct MemorySource {
  using Allocate = void*(size_t bytes, int device_index, sycl::queue* queue);
  using Free = void(void* pointer, size_t bytes, int device_index, sycl::queue* queue);
  Allocate* allocate;  // nullptr if it has none
  Free* free;
};

}  // namespace xpurt
