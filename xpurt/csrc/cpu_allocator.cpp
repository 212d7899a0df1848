#include "cpu_allocator.h"

#include <c10/core/CPUAllocator.h>

#include "allocator.h"

namespace xpurt {
namespace {

thread_local bool on_device = false;

class SwitchingAllocator final : public c10::Allocator {
 public:
  explicit SwitchingAllocator(c10::Allocator* cpu) : cpu_(cpu) {}

  c10::DataPtr allocate(size_t bytes) override {
    if (C10_LIKELY(!on_device)) return cpu_->allocate(bytes);
    c10::DataPtr data = allocate_for_host(bytes);
    data.unsafe_set_device(c10::Device(c10::DeviceType::CPU));
    return data;
  }
  // Right for raw_allocate: code that asks for a raw pointer gets the CPU's, whose
  // deleter this is. Device memory carries its own.
  c10::DeleterFnPtr raw_deleter() const override {
    return on_device ? device_allocator().raw_deleter() : cpu_->raw_deleter();
  }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
  bool is_simple_data_ptr(const c10::DataPtr& data) const override {
    return cpu_->is_simple_data_ptr(data);
  }

 private:
  c10::Allocator* cpu_;
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
  static auto* const leaked = new SwitchingAllocator(c10::GetCPUAllocator());
  return *leaked;
}

}  // namespace xpurt

namespace {
const bool registered = [] {
  constexpr uint8_t kAboveTheDefault = 100;
  c10::SetCPUAllocator(&xpurt::switching_allocator(), kAboveTheDefault);
  return true;
}();
}  // namespace
