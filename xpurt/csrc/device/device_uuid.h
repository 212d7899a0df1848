#pragma once

#include <string>

#include "device/device.h"

namespace xpurt {

// The 16 bytes by which the driver identifies the hardware, equal in all its backends.
// Empty if the driver does not report them.
std::string device_uuid(DevicePointer device);

}  // namespace xpurt
