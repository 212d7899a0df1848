#pragma once

#include <string>

#include "device/device.h"

namespace xpurt {

// The 16 bytes by which the driver names the hardware, the same through each of
// its backends; empty where the driver does not tell.
std::string device_uuid(DevicePointer device);

}  // namespace xpurt
