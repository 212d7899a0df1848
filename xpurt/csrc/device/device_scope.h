// Makes an ordinal the calling thread's current device for as long as it lives.
#pragma once

#include "device/current_device.h"

namespace xpurt {

class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex index) noexcept
      : before_(exchange_device(index)) {}
  ~DeviceScope() { exchange_device(before_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  c10::DeviceIndex before_;
};

}  // namespace xpurt
