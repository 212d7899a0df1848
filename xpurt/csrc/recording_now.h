// Whether a profiler records what the devices do, and what it is told from places that
// know of no queue. Free of SYCL, for what is included often.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace xpurt {

extern std::atomic<bool> work_is_recorded;
inline bool records_work() {
  return work_is_recorded.load(std::memory_order_relaxed);
}

// While records_work(): PyTorch's CPU kernel of an op ended now, and took so long, the
// wait for its operands included. `device_id`: the home device of its ordinal.
void note_host_work(const std::string& op, int device_id, int64_t took_ns);

// This thread has waited for a device until now.
void note_wait_ended();

}  // namespace xpurt
