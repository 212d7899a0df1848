#include "memory/replica/transfers.h"

#include <map>

#include "device/device_counts.h"
#include "host/mutex.h"

namespace xpurt {
namespace {

struct TransferCounts {
  Mutex mutex{Rank::transfers};
  std::map<const PhysicalDevice*, Transfers> by_device;
};

TransferCounts& transfer_counts() {
  static auto* const leaked = new TransferCounts;
  return *leaked;
}

}  // namespace

void count_transfer(const PhysicalDevice& from, const PhysicalDevice& to,
                    uint64_t bytes) {
  TransferCounts& counts = transfer_counts();
  std::lock_guard<Mutex> lock(counts.mutex);
  Transfers& counted = counts.by_device[&to];
  ++counted.count;
  counted.bytes += bytes;
  counts.by_device[&from].from += bytes;
}

void count_eviction(const PhysicalDevice& device, uint64_t bytes) {
  count_evicted(device.id, bytes);
  TransferCounts& counts = transfer_counts();
  std::lock_guard<Mutex> lock(counts.mutex);
  counts.by_device[&device].evicted += bytes;
}

std::vector<Transfers> transfers_of(c10::DeviceIndex index) {
  TransferCounts& counts = transfer_counts();
  std::lock_guard<Mutex> lock(counts.mutex);
  std::vector<Transfers> result;
  for (const PhysicalDevice* device : ordinal(index).devices) {
    result.push_back(counts.by_device[device]);
  }
  return result;
}

}  // namespace xpurt
