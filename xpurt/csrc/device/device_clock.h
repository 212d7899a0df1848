// A device's clock, and what the host's shows at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"

namespace xpurt {

// Each comparison brackets one command of the device between two readings of the
// host's clock, so it is wrong by at most half the time that the command took there
// and back: the shortest of several tries, some microseconds on a CPU device. What
// lies between two comparisons is interpolated; what lies outside is moved by the
// nearest one's difference.
class DeviceClock {
 public:
  // Throws sycl::exception where the device has no clock.
  explicit DeviceClock(const PhysicalDevice& device);

  // Waits for the device. Without the GIL, if that matters to the caller.
  void compare();

  int64_t to_host_ns(uint64_t device_ns) const;

 private:
  struct Comparison {
    int64_t device_ns;
    int64_t host_ns;
  };
  sycl::queue queue_;
  std::vector<Comparison> comparisons_;  // in order of time
};

}  // namespace xpurt
