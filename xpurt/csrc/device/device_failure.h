// A device that fails while the process runs.
#pragma once

#include <c10/util/Exception.h>

#include <string>
#include <sycl/sycl.hpp>

#include "device/device.h"

namespace xpurt {

// Work could not be submitted to a device: it was unplugged, was reset, or lost its
// memory. A RuntimeError in Python.
class DeviceFailure : public c10::Error {
 public:
  DeviceFailure(const PhysicalDevice& failed, const std::string& what, const char* why);
  const PhysicalDevice& device;
};

// Runs a submission. An exception of the SYCL runtime becomes a DeviceFailure. `what`
// returns the name of what was submitted.
template <typename Name, typename Submit>
auto submit_to(const PhysicalDevice& device, const Name& what, const Submit& submit) {
  try {
    return submit();
  } catch (const sycl::exception& error) {
    throw DeviceFailure(device, what(), error.what());
  }
}

// Excludes a device: it is not chosen again in this process. False if the device was
// excluded already.
bool exclude_device(int physical_device_id);
bool is_excluded(int physical_device_id) noexcept;
// The number of devices excluded so far.
uint64_t exclusions() noexcept;

// Excludes the device for the rest of the process, and warns of it once.
void take_out(const PhysicalDevice& device, const std::string& why);
void take_out(const DeviceFailure& failure);

}  // namespace xpurt
