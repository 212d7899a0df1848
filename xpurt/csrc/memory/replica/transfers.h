// Counts of the copies between the devices of an ordinal.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "device/device.h"

namespace xpurt {

struct Transfers {
  uint64_t count = 0;
  uint64_t bytes = 0;
};

// Counts a submitted copy of so many bytes to the device.
void count_transfer(const PhysicalDevice& device, uint64_t bytes);

// The copies to each device of an ordinal, by position, since the process began.
std::vector<Transfers> transfers_to(c10::DeviceIndex index);

}  // namespace xpurt
