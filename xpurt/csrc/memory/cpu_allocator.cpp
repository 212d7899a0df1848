#include "memory/cpu_allocator.h"

#include <c10/core/CPUAllocator.h>

#include "memory/allocator.h"

namespace xpurt {
namespace {

thread_local bool on_device = false;

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

class SwitchingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (C10_LIKELY(!on_device)) return cpu_allocator().allocate(bytes);
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
