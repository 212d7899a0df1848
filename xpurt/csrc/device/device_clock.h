// A device's clock, and the host's clock at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.h"

namespace xpurt {

// Each comparison brackets one command of the device between two readings of the host's
// clock. Its error is at most half the round trip of the command. The shortest of
// several tries is used: some microseconds on a CPU device. Times between two
// comparisons are interpolated. Times outside get the offset of the nearest comparison.
class DeviceClock {
 public:
  // Throws sycl::exception if the device has no clock.
  explicit DeviceClock(const PhysicalDevice& device);

  // Waits for the device. Does not release the GIL.
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
