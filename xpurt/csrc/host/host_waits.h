// Counts the points of the program at which it waits for results.
#pragma once

#include <atomic>
#include <cstdint>

namespace xpurt {

// Work after such a point cannot begin before the work in front of it has ended:
// item(), a copy to the CPU, a synchronization. Also counted if nothing was pending.
inline std::atomic<uint64_t> host_waits{0};

inline void count_host_wait() noexcept {
  // Not atomic as a whole: of two threads that wait at once, one may be lost.
  host_waits.store(host_waits.load(std::memory_order_relaxed) + 1,
                   std::memory_order_relaxed);
}

}  // namespace xpurt
