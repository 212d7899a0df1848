#include "memory/cpu_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <optional>

#include "device/device.h"
#include "device/device_scope.h"
#include "memory/allocator.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

thread_local bool on_device = false;
std::atomic<size_t> cached_from{SIZE_MAX};
std::atomic<size_t> cpu_blocks{0};

c10::Allocator& cpu_allocator() {
  static c10::Allocator* const found = c10::GetCPUAllocator();
  return *found;
}

// A raw pointer is freed with the deleter of its allocation, at a time when the switch
// may be in another position: packed weights of oneDNN outlive the op.
void free_either(void* pointer) {
  const bool on_some_device = device_of_pointer(pointer) >= 0;
  (on_some_device ? device_allocator() : cpu_allocator()).raw_deleter()(pointer);
}

void free_cpu_block(void* pointer) {
  --cpu_blocks;
  device_allocator().raw_deleter()(pointer);
}

// nullopt: the cache cannot give this memory now.
std::optional<c10::DataPtr> from_cache(size_t bytes) {
  if (in_bad_fork() || is_exiting() || capture_is_underway()) return std::nullopt;
  const c10::DeviceIndex index = ordinal_of_host();
  if (index < 0) return std::nullopt;
  const DeviceScope scope(index);
  try {
    c10::DataPtr data = allocate_for_host(bytes);
    // Another thread may have changed the mapping before; the block holds it from now
    // on.
    if (ordinal_of_host() != index) return std::nullopt;
    return as_cpu_memory(std::move(data));
  } catch (const c10::OutOfMemoryError&) {
    return std::nullopt;  // the system may still have other memory
  }
}

class SwitchingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (C10_LIKELY(!on_device)) {
      if (C10_UNLIKELY(bytes >= cached_from.load(std::memory_order_relaxed))) {
        if (auto data = from_cache(bytes)) return *std::move(data);
      }
      return cpu_allocator().allocate(bytes);
    }
    c10::DataPtr data = allocate_for_host(bytes);
    data.unsafe_set_device(c10::Device(c10::DeviceType::CPU));
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_either; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return cpu_allocator().is_simple_data_ptr(data);
  }
};

}  // namespace

ResultsOnDevice::ResultsOnDevice(bool on) noexcept : before_(on_device) {
  on_device = on;
}

ResultsOnDevice::~ResultsOnDevice() {
  on_device = before_;
}

bool results_are_on_device() noexcept {
  return on_device;
}

c10::DataPtr as_cpu_memory(c10::DataPtr data) {
  ++cpu_blocks;
  void* const pointer = data.release_context();
  return {pointer, pointer, &free_cpu_block, c10::Device(c10::DeviceType::CPU)};
}

size_t blocks_of_cpu_tensors() noexcept {
  return cpu_blocks;
}

void cache_cpu_memory_from(size_t bytes) noexcept {
  cached_from = bytes;
}

c10::DeviceIndex ordinal_of_host() noexcept {
  const Placement* now = installed_placement();
  if (now == nullptr) return -1;
  for (size_t i = 0; i < now->ordinals.size(); ++i) {
    if (now->ordinals[i].shares_memory_with_host()) {
      return static_cast<c10::DeviceIndex>(i);
    }
  }
  return -1;
}

bool is_device_memory(const c10::DataPtr& data) noexcept {
  return data.get_deleter() == device_allocator().raw_deleter();
}

c10::Allocator& switching_allocator() {
  static auto* const leaked = new SwitchingAllocator;
  return *leaked;
}

}  // namespace xpurt

namespace {
const bool cpu_allocator_registered = [] {
  constexpr uint8_t kAboveTheDefault = 100;
  xpurt::cpu_allocator();  // keeps PyTorch's allocator, before it is replaced
  c10::SetCPUAllocator(&xpurt::switching_allocator(), kAboveTheDefault);
  return true;
}();
}  // namespace
