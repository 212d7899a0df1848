// How much memory the tensors of a prototype have on each of its devices.
#pragma once

#include <vector>

#include "host/mutex.h"
#include "memory/memory_statistics.h"

namespace xpurt {

// Note [Memory of prototypes]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A prototype has memory of the device behind it, and no cache of its own. A block is
// counted as long as a storage of the prototype owns it. So what is reserved is what is
// allocated, and each block is a segment. On xpu a block has the size that xpu's cache
// gave it; memory that this cache holds free is xpu's.
//
// Not counted: refused allocations, as kernels of the device behind make most of them;
// what these kernels need while they run; memory of a vendor's own allocator.
class PrototypeMemory {
 public:
  using Stats = MemoryStatistics::Stats;
  using Amount = MemoryStatistics::Amount;

  explicit PrototypeMemory(c10::DeviceIndex count)
      : devices_(static_cast<size_t>(count)) {}

  void taken(c10::DeviceIndex index, const Amount& block) {
    const std::lock_guard<Mutex> lock(mutex_);
    devices_[index].segment_made(block.kind, block.bytes);
    devices_[index].handed_out(block);
  }
  void given_back(c10::DeviceIndex index, const Amount& block) {
    const std::lock_guard<Mutex> lock(mutex_);
    devices_[index].freed(block);
    devices_[index].inactive(block);
    devices_[index].segment_dropped(block.kind, block.bytes);
  }
  Stats stats(c10::DeviceIndex index) {
    const std::lock_guard<Mutex> lock(mutex_);
    return devices_[index].get();
  }
  void reset_accumulated(c10::DeviceIndex index) {
    const std::lock_guard<Mutex> lock(mutex_);
    devices_[index].reset_accumulated();
  }
  void reset_peaks(c10::DeviceIndex index) {
    const std::lock_guard<Mutex> lock(mutex_);
    devices_[index].reset_peaks();
  }

 private:
  Mutex mutex_{Rank::prototype_memory};
  std::vector<MemoryStatistics> devices_;
};

}  // namespace xpurt
