// Whether a profiler records what the devices do. Free of SYCL, for what is included
// often.
#pragma once

#include <atomic>
#include <cstdint>

namespace xpurt {

extern std::atomic<bool> work_is_recorded;
inline bool records_work() {
  return work_is_recorded.load(std::memory_order_relaxed);
}

// Nanoseconds since the Unix epoch, as PyTorch's profiler counts.
int64_t host_now_ns();

// While records_work(): this thread has waited for a device until now.
void record_wait_ended();
// When that was, for this thread; 0 if it has not waited.
int64_t waited_until_ns();

}  // namespace xpurt
