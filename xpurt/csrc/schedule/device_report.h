// The copies and shards that each physical device ran, and how well its times were
// predicted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xpurt {

struct DeviceReportRow {
  std::string device;
  uint64_t moves;
  uint64_t bytes_moved;
  uint64_t split_ops;
  uint64_t timed_calls;  // the calls that the scheduler learned from
  double predicted_us;   // of the timed calls, before they ran
  double measured_us;    // of the timed calls
  double busy_us;        // predicted, of all ops for which the device was chosen
};
// One row for each device with a copy, a shard or a predicted time.
std::vector<DeviceReportRow> device_report();
void reset_device_report();

}  // namespace xpurt
