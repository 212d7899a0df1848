#include "allocator.h"

#include <c10/util/Exception.h>

#include <map>
#include <mutex>

#include "stream.h"

namespace xpurt {
namespace {

struct Block {
  size_t bytes;
  c10::DeviceIndex device;
  sycl::context context;
};

struct Blocks {
  std::mutex mutex;
  std::map<uintptr_t, Block> live;  // by address
  size_t bytes = 0;
};

Blocks& blocks() {
  static Blocks* const leaked = new Blocks;
  return *leaked;
}

void give_back(void* pointer) {
  if (pointer == nullptr || in_bad_fork()) return;
  std::unique_lock<std::mutex> lock(blocks().mutex);
  const auto found = blocks().live.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == blocks().live.end()) return;
  const Block block = found->second;
  blocks().bytes -= block.bytes;
  blocks().live.erase(found);
  lock.unlock();
  synchronize_device(block.device);
  sycl::free(pointer, block.context);
}

class DirectAllocator final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::DeviceIndex index = current_device();
    const c10::Device device(c10::DeviceType::XPU, index);
    const PhysicalDevice& home = ordinal(index).home_device();
    if (bytes == 0) return {nullptr, nullptr, &give_back, device};
    void* pointer = sycl::malloc_device(bytes, home.device, home.context);
    TORCH_CHECK_WITH(OutOfMemoryError, pointer != nullptr, "XPU out of memory");
    std::lock_guard<std::mutex> lock(blocks().mutex);
    blocks().live.emplace(reinterpret_cast<uintptr_t>(pointer),
                          Block{bytes, index, home.context});
    blocks().bytes += bytes;
    return {pointer, pointer, &give_back, device};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    current_stream().home_queue().memcpy(to, from, bytes);
  }
  bool initialized() override { return installed_placement() != nullptr; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    return {};
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {}
};

}  // namespace

c10::DeviceAllocator& device_allocator() {
  static auto* const leaked = new DirectAllocator;
  return *leaked;
}

LiveMemory live_memory() noexcept {
  std::lock_guard<std::mutex> lock(blocks().mutex);
  return {blocks().live.size(), blocks().bytes};
}

c10::DeviceIndex device_of_pointer(const void* pointer) noexcept {
  std::lock_guard<std::mutex> lock(blocks().mutex);
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = blocks().live.upper_bound(address);
  if (after == blocks().live.begin()) return -1;
  const auto& [start, block] = *--after;
  return address < start + block.bytes ? block.device : c10::DeviceIndex(-1);
}

void release_cached_memory() {}

}  // namespace xpurt

namespace {
const bool registered = [] {
  c10::SetAllocator(c10::DeviceType::XPU, &xpurt::device_allocator());
  return true;
}();
}  // namespace
