#include "device/device_counts.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace xpurt {
namespace {

struct Counters {
  std::atomic<uint64_t> moves{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> shards{0};
  std::atomic<uint64_t> evicted{0};
};

std::array<Counters, kCountedDevices> device_counters;

Counters& counters_of(int id) {
  return device_counters[std::clamp(id, 0, kCountedDevices - 1)];
}

}  // namespace

void count_moved(int physical_device_id, uint64_t bytes) noexcept {
  Counters& counters = counters_of(physical_device_id);
  counters.moves.fetch_add(1, std::memory_order_relaxed);
  counters.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void count_evicted(int physical_device_id, uint64_t bytes) noexcept {
  counters_of(physical_device_id).evicted.fetch_add(bytes, std::memory_order_relaxed);
}

void count_shard(int physical_device_id) noexcept {
  counters_of(physical_device_id).shards.fetch_add(1, std::memory_order_relaxed);
}

DeviceCount device_count_of(int physical_device_id) noexcept {
  const Counters& counters = counters_of(physical_device_id);
  return {counters.moves, counters.bytes, counters.shards, counters.evicted};
}

void reset_device_counts() noexcept {
  for (Counters& counters : device_counters) {
    counters.moves = 0;
    counters.bytes = 0;
    counters.shards = 0;
    counters.evicted = 0;
  }
}

}  // namespace xpurt
