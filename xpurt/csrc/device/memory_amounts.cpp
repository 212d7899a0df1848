#include "device/memory_amounts.h"

#include <algorithm>

#include "host/host_memory.h"

namespace xpurt {

uint64_t total_memory(const sycl::device& device) {
  const uint64_t whole = device.get_info<sycl::info::device::global_mem_size>();
  const uint64_t usable = device.is_cpu() ? host_memory().total : 0;
  return usable != 0 ? std::min(usable, whole) : whole;
}

MemoryAmounts memory_amounts(const sycl::device& device, uint64_t total,
                             const std::function<uint64_t()>& held) {
  if (device.is_cpu()) {
    const HostMemory host = host_memory();
    if (host.total != 0) return {std::min(host.free, total), total};
  } else if (device.has(sycl::aspect::ext_intel_free_memory)) {
    return {device.get_info<sycl::ext::intel::info::device::free_memory>(), total};
  }
  return {total - std::min(held(), total), total};
}

}  // namespace xpurt
