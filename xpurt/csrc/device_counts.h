// What each physical device did beside running ops: copies, and pieces of split ops.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xpurt {

// So many bytes were copied to or from the device, which is not the home device.
void count_moved(int physical_device_id, uint64_t bytes) noexcept;

// The device computed one piece of an op that several devices shared.
void count_piece(int physical_device_id) noexcept;
uint64_t pieces_of(int physical_device_id) noexcept;

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
