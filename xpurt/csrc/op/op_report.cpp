#include "op/op_report.h"

#include <chrono>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "device/device.h"
#include "stream/work_recording.h"

namespace xpurt {
namespace {

uint64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const uint64_t first_ns = clock_ns();
const uint64_t first_ticks = ticks_now();

double seconds_per_tick() {
  const double ticks = static_cast<double>(ticks_now() - first_ticks);
  return ticks > 0 ? static_cast<double>(clock_ns() - first_ns) / ticks * 1e-9 : 0.0;
}

OpCounts& counts_of(OpRecord& record) {
  OpCounts* found = record.counts.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  auto* made = new OpCounts{};  // never freed, like the record
  if (record.counts.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

std::string name_of_device(int id) {
  if (id == kCpuTensors) return "cpu";
  const PhysicalDevice* device = find_physical_device(id);
  return device != nullptr ? device->name : "device " + std::to_string(id);
}

}  // namespace

uint64_t ticks_now() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return clock_ns();
#endif
}

void count_op(OpRecord& record, Tier tier, int device_id, uint64_t ticks,
              uint64_t bytes_copied) {
  const int column =
      device_id == kCpuTensors ? kCpuTensors : std::min(device_id, kCountedDevices - 1);
  OpCount& count = counts_of(record)[static_cast<size_t>(tier)][column];
  count.calls.fetch_add(1, std::memory_order_relaxed);
  count.ticks.fetch_add(ticks, std::memory_order_relaxed);
  if (bytes_copied != 0) {
    count.bytes_copied.fetch_add(bytes_copied, std::memory_order_relaxed);
  }
  if (C10_UNLIKELY(records_work()) && tier == Tier::native) {
    const double seconds = static_cast<double>(ticks) * seconds_per_tick();
    record_host_work(record.name, device_id, static_cast<int64_t>(seconds * 1e9));
  }
}

std::vector<OpReportRow> op_report() {
  std::vector<OpReportRow> rows;
  const double scale = seconds_per_tick();
  for_each_op_record([&](OpRecord& record) {
    OpCounts* counts = record.counts.load(std::memory_order_acquire);
    if (counts == nullptr) return;
    for (int tier = 0; tier < kTiers; ++tier) {
      for (int id = 0; id <= kCpuTensors; ++id) {
        const OpCount& count = (*counts)[tier][id];
        const uint64_t calls = count.calls.load();
        if (calls == 0) continue;
        rows.push_back({record.name, static_cast<Tier>(tier), name_of_device(id), calls,
                        count.bytes_copied.load(),
                        static_cast<double>(count.ticks.load()) * scale});
      }
    }
  });
  return rows;
}

void reset_op_report() {
  for_each_op_record([](OpRecord& record) {
    OpCounts* counts = record.counts.load(std::memory_order_acquire);
    if (counts == nullptr) return;
    for (auto& of_tier : *counts) {
      for (OpCount& count : of_tier) {
        count.calls = 0;
        count.bytes_copied = 0;
        count.ticks = 0;
      }
    }
  });
}

}  // namespace xpurt
