#include "device/device_clock.h"

#include <limits>

#include "device/event_status.h"
#include "host/recording_now.h"

namespace xpurt {

DeviceClock::DeviceClock(const PhysicalDevice& device)
    : queue_(device.context, device.device,
             {sycl::property::queue::in_order{},
              sycl::property::queue::enable_profiling{}}) {}

void DeviceClock::compare() {
  using sycl::info::event_profiling::command_end;
  constexpr int kTries = 8;
  int64_t shortest = std::numeric_limits<int64_t>::max();
  Comparison best{};
  for (int i = 0; i < kTries; ++i) {
    const int64_t before = host_now_ns();
    sycl::event command = queue_.ext_oneapi_submit_barrier();
    wait_for_end(command);
    const int64_t after = host_now_ns();
    const auto device_ns =
        static_cast<int64_t>(command.get_profiling_info<command_end>());
    if (after - before >= shortest) continue;
    shortest = after - before;
    best = {device_ns, before + (after - before) / 2};
  }
  comparisons_.push_back(best);
}

int64_t DeviceClock::to_host_ns(uint64_t device_ns) const {
  const auto at = static_cast<int64_t>(device_ns);
  const Comparison& first = comparisons_.front();
  const Comparison& last = comparisons_.back();
  const int64_t first_offset = first.host_ns - first.device_ns;
  const int64_t last_offset = last.host_ns - last.device_ns;
  if (at <= first.device_ns || last.device_ns <= first.device_ns) {
    return at + first_offset;
  }
  if (at >= last.device_ns) return at + last_offset;
  const double part = static_cast<double>(at - first.device_ns) /
                      static_cast<double>(last.device_ns - first.device_ns);
  const auto drift = static_cast<double>(last_offset - first_offset);
  return at + first_offset + static_cast<int64_t>(part * drift);
}

}  // namespace xpurt
