#include "schedule/device_report.h"

#include "device/device.h"
#include "device/device_counts.h"
#include "schedule/decision.h"

namespace xpurt {

std::vector<DeviceReportRow> device_report() {
  std::vector<DeviceReportRow> rows;
  for (int id = 0; id < kCountedDevices; ++id) {
    const PhysicalDevice* device = find_physical_device(id);
    const DeviceCount count = device_count_of(id);
    const DecisionTimes times = decision_times(id);
    const bool did_any = count.moves != 0 || count.shards != 0 || times.busy_us > 0;
    if (device == nullptr || !did_any) continue;
    rows.push_back({device->name, count.moves, count.bytes, count.shards, times.calls,
                    times.predicted_us, times.measured_us, times.busy_us});
  }
  return rows;
}

void reset_device_report() {
  reset_device_counts();
  reset_decision_times();
}

}  // namespace xpurt
