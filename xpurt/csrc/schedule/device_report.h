// The copies and shards that each physical device ran, how well its times were
// predicted, and what the choice of devices gained.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace xpurt {

// Predicted and measured times of the timed calls, and the predicted time of all calls,
// by physical device. Guarded by the scheduler's mutex.
struct DecisionTimes {
  uint64_t calls = 0;  // timed calls
  double predicted_us = 0;
  double measured_us = 0;
  double busy_us = 0;    // predicted time of all calls
  double gained_us = 0;  // predicted, by all calls, over the best device alone
};
DecisionTimes& decision_times(const PhysicalDevice& device);

struct DeviceReportRow {
  std::string device;
  uint64_t moves;
  uint64_t bytes_moved;
  uint64_t split_ops;
  uint64_t timed_calls;  // the calls that the scheduler learned from
  double predicted_us;   // of the timed calls, before they ran
  double measured_us;    // of the timed calls
  double busy_us;        // predicted, of all ops for which the device was chosen
  double gained_us;      // predicted, by these ops, over the best device alone
  uint64_t bytes_evicted;
};
// One row for each device with a copy, a shard or a predicted time.
std::vector<DeviceReportRow> device_report();
void reset_device_report();

}  // namespace xpurt
