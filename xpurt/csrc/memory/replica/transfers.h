// Counts of the copies between the devices of an ordinal, and of evicted bytes.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "device/device.h"

namespace xpurt {

// Of one device.
struct Transfers {
  uint64_t count = 0;    // copies to it
  uint64_t bytes = 0;    // of these
  uint64_t from = 0;     // bytes of copies from it
  uint64_t evicted = 0;  // bytes
};

// Counts a submitted copy of so many bytes.
void count_transfer(const PhysicalDevice& from, const PhysicalDevice& to,
                    uint64_t bytes);

// Counts the bytes of a replica that the device had no room for.
void count_eviction(const PhysicalDevice& device, uint64_t bytes);

// The counts of each device of an ordinal, by position, since the process began.
std::vector<Transfers> transfers_of(c10::DeviceIndex index);

}  // namespace xpurt
