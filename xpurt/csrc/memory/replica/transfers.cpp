#include "memory/replica/transfers.h"

#include <map>

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

void count_transfer(const PhysicalDevice& device, uint64_t bytes) {
  TransferCounts& counts = transfer_counts();
  std::lock_guard<Mutex> lock(counts.mutex);
  Transfers& counted = counts.by_device[&device];
  ++counted.count;
  counted.bytes += bytes;
}

std::vector<Transfers> transfers_to(c10::DeviceIndex index) {
  TransferCounts& counts = transfer_counts();
  std::lock_guard<Mutex> lock(counts.mutex);
  std::vector<Transfers> result;
  for (const PhysicalDevice* device : ordinal(index).devices) {
    result.push_back(counts.by_device[device]);
  }
  return result;
}

}  // namespace xpurt
