// Whether a profiler records what the devices do. Independent of SYCL, as many files
// include it.
#pragma once

#include <atomic>
#include <cstdint>

namespace xpurt {

extern std::atomic<bool> work_is_recorded;
inline bool records_work() {
  return work_is_recorded.load(std::memory_order_relaxed);
}

// Nanoseconds since the Unix epoch, by the clock of PyTorch's profiler.
int64_t host_now_ns();

// Called while records_work(): this thread's wait for a device ends now.
void record_wait_ended();
// The end of this thread's last wait, by host_now_ns(); 0 if there was none.
int64_t waited_until_ns();

}  // namespace xpurt
