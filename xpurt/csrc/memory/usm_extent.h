// Start and size of an allocation of unified shared memory.
#pragma once

#include "device/device.h"
#include "memory/allocator.h"

namespace xpurt {

// The allocation that contains `pointer`, on the device that holds it. {nullptr, 0} if
// the driver cannot report it.
Extent usm_extent(const void* pointer, const PhysicalDevice& home);

}  // namespace xpurt
