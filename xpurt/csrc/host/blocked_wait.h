// The end of a thread's last wait for a device.
#pragma once

namespace xpurt {

// Microseconds of a steady clock; 0 if there was no such wait. Only waits that blocked
// this thread count: the work of a shorter one may have ended long before.
double blocked_until_us() noexcept;

}  // namespace xpurt
