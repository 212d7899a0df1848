#include "device_counts.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "device.h"
#include "op_record.h"
#include "placing.h"

namespace xpurt {
namespace {

struct DeviceCount {
  std::atomic<uint64_t> moves{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> pieces{0};
};

std::array<DeviceCount, kCountedDevices> counts;

DeviceCount& count_of(int id) {
  return counts[std::clamp(id, 0, kCountedDevices - 1)];
}

}  // namespace

void count_moved(int physical_device_id, uint64_t bytes) noexcept {
  DeviceCount& count = count_of(physical_device_id);
  count.moves.fetch_add(1, std::memory_order_relaxed);
  count.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void count_piece(int physical_device_id) noexcept {
  count_of(physical_device_id).pieces.fetch_add(1, std::memory_order_relaxed);
}

uint64_t pieces_of(int physical_device_id) noexcept {
  return count_of(physical_device_id).pieces.load(std::memory_order_relaxed);
}

std::vector<DeviceReportRow> device_report() {
  std::vector<DeviceReportRow> rows;
  for (int id = 0; id < kCountedDevices; ++id) {
    const PhysicalDevice* device = find_physical_device(id);
    const DeviceCount& count = counts[id];
    const PlacedTimes times = placed_times(id);
    const bool did_any = count.moves != 0 || count.pieces != 0 || times.busy_us > 0;
    if (device == nullptr || !did_any) continue;
    rows.push_back({device->name, count.moves, count.bytes, count.pieces, times.calls,
                    times.predicted_us, times.measured_us, times.busy_us});
  }
  return rows;
}

void reset_device_report() {
  for (DeviceCount& count : counts) {
    count.moves = 0;
    count.bytes = 0;
    count.pieces = 0;
  }
  reset_placed_times();
}

}  // namespace xpurt
