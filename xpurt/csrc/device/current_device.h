// The calling thread's current device. Independent of SYCL, as many files include it.
#pragma once

#include <c10/core/Device.h>

#include "host/api.h"

namespace xpurt {

// Index of the calling thread's current device. Setting it calls no driver and checks
// nothing: autograd sets indices beyond the real count. An index that does not exist
// under a new mapping becomes 0.
XPURT_API c10::DeviceIndex current_device() noexcept;
XPURT_API c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept;

}  // namespace xpurt
