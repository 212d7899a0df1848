// Where an allocation of unified shared memory begins and ends.
#pragma once

#include "device/device.h"
#include "memory/allocator.h"

namespace xpurt {

// The allocation that contains `pointer`, on the device that holds it; {nullptr, 0}
// where the driver does not tell.
Extent usm_extent(const void* pointer, const PhysicalDevice& home);

}  // namespace xpurt
