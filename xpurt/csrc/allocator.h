// The device allocator of xpu tensors.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace xpurt {

c10::DeviceAllocator& device_allocator();

struct LiveMemory {
  size_t storages = 0;  // blocks handed out and not yet given back
  size_t bytes = 0;     // as requested
};
LiveMemory live_memory() noexcept;

// The ordinal whose memory contains `pointer`, or -1. Never throws.
c10::DeviceIndex device_of_pointer(const void* pointer) noexcept;

// Gives every cached block back to the driver; nothing may be alive.
void release_cached_memory();

}  // namespace xpurt
