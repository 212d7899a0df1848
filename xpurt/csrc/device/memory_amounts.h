// How much memory a device has, and how much of it is free.
#pragma once

#include <cstdint>
#include <functional>
#include <sycl/sycl.hpp>

#include "host/api.h"

namespace xpurt {

struct MemoryAmounts {
  uint64_t free = 0;   // bytes
  uint64_t total = 0;  // bytes
};

// In bytes. Of a CPU it is at most what this process may use of the machine's memory.
XPURT_API uint64_t total_memory(const sycl::device& device);

// `held`: what this process has allocated on the device, in bytes. It is called where
// the driver does not report free memory.
XPURT_API MemoryAmounts memory_amounts(const sycl::device& device, uint64_t total,
                                       const std::function<uint64_t()>& held);

}  // namespace xpurt
