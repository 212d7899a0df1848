#include "device/device_failure.h"

#include <array>
#include <atomic>

namespace xpurt {
namespace {

constexpr int kExcludable = 4096;  // physical devices of a process
std::array<std::atomic<uint64_t>, kExcludable / 64> excluded{};  // a bit per device
std::atomic<uint64_t> excluded_count{0};

}  // namespace

DeviceFailure::DeviceFailure(const PhysicalDevice& failed, const std::string& what,
                             const char* why)
    : c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                 c10::str(what, " could not be submitted to ", failed.name, ": ", why,
                          is_excluded(failed.id)
                              ? ". That device failed before; what it alone held is "
                                "lost. Make the tensor anew."
                              : "")),
      device(failed) {}

bool exclude_device(int physical_device_id) {
  if (physical_device_id >= kExcludable) return false;
  const uint64_t bit = uint64_t{1} << (physical_device_id % 64);
  const bool first = (excluded[physical_device_id / 64].fetch_or(bit) & bit) == 0;
  if (first) ++excluded_count;
  return first;
}

bool is_excluded(int physical_device_id) noexcept {
  if (physical_device_id >= kExcludable) return false;
  const uint64_t word =
      excluded[physical_device_id / 64].load(std::memory_order_relaxed);
  return (word >> (physical_device_id % 64) & 1) != 0;
}

uint64_t exclusions() noexcept {
  return excluded_count.load(std::memory_order_acquire);
}

void take_out(const PhysicalDevice& device, const std::string& why) {
  if (!exclude_device(device.id)) return;
  TORCH_WARN(device.name,
             " failed, and is not used for xpu any more in this process: its work is "
             "done by the other devices. ",
             why);
}

void take_out(const DeviceFailure& failure) {
  take_out(failure.device, failure.what_without_backtrace());
}

}  // namespace xpurt
