#include "host/clock.h"

#include <c10/macros/Macros.h>

#include <atomic>
#include <chrono>

namespace xpurt {
namespace {

constexpr double kRuns = -1;
std::atomic<double> stopped_at_us{kRuns};

}  // namespace

double now_us() noexcept {
  const double stopped_us = stopped_at_us.load(std::memory_order_relaxed);
  if (C10_UNLIKELY(stopped_us != kRuns)) return stopped_us;
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void stop_clock(std::optional<double> us) noexcept {
  stopped_at_us = us.value_or(kRuns);
}

}  // namespace xpurt
