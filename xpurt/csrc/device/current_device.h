// The calling thread's current device. Free of SYCL, for what is included often.
#pragma once

#include <c10/core/Device.h>

namespace xpurt {

// Index of the calling thread's current device. Setting does not touch a
// driver, and does not check: autograd sets indices beyond the real count. An index
// that a new mapping does not have becomes 0.
c10::DeviceIndex current_device() noexcept;
c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept;

}  // namespace xpurt
