#include "schedule/device_report.h"

#include <algorithm>
#include <array>

#include "device/device_counts.h"
#include "schedule/stream_clock.h"

namespace xpurt {
namespace {

std::array<DecisionTimes, kCountedDevices>& times() {
  static auto* const leaked = new std::array<DecisionTimes, kCountedDevices>;
  return *leaked;
}

}  // namespace

DecisionTimes& decision_times(const PhysicalDevice& device) {
  return times()[std::min(device.id, kCountedDevices - 1)];
}

std::vector<DeviceReportRow> device_report() {
  std::vector<DeviceReportRow> rows;
  for (int id = 0; id < kCountedDevices; ++id) {
    const PhysicalDevice* device = find_physical_device(id);
    if (device == nullptr) continue;
    const DeviceCount count = device_count_of(id);
    DecisionTimes seen;
    {
      std::lock_guard<Mutex> lock(scheduler_mutex());
      seen = decision_times(*device);
    }
    if (count.moves == 0 && count.shards == 0 && seen.busy_us <= 0) continue;
    rows.push_back({device->name, count.moves, count.bytes, count.shards, seen.calls,
                    seen.predicted_us, seen.measured_us, seen.busy_us, seen.gained_us,
                    count.evicted_bytes});
  }
  return rows;
}

void reset_device_report() {
  reset_device_counts();
  std::lock_guard<Mutex> lock(scheduler_mutex());
  times().fill({});
}

}  // namespace xpurt
