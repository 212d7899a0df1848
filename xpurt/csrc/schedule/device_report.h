// What each physical device did, beside running ops: copies, shards of split ops, and
// how well its times were predicted.
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
  uint64_t timed_calls;  // whose times the scheduler learned from
  double predicted_us;   // of these, before they ran
  double measured_us;
  double busy_us;  // predicted, of all ops that it was chosen for
};
// One row for each device that did any of it.
std::vector<DeviceReportRow> device_report();
void reset_device_report();

}  // namespace xpurt
