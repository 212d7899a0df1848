// Counters of each physical device: copies, evicted bytes, and shards of split ops.
#pragma once

#include <cstdint>

namespace xpurt {

constexpr int kCountedDevices = 32;  // later ones share the last counters

// Counts bytes that were copied to or from a device other than the home device.
void count_moved(int physical_device_id, uint64_t bytes) noexcept;

// Counts bytes of replicas that the device had no room for.
void count_evicted(int physical_device_id, uint64_t bytes) noexcept;

// Counts a shard that the device computed of an op that several devices shared.
void count_shard(int physical_device_id) noexcept;

struct DeviceCount {
  uint64_t moves;
  uint64_t bytes;
  uint64_t shards;
  uint64_t evicted_bytes;
};
DeviceCount device_count_of(int physical_device_id) noexcept;
void reset_device_counts() noexcept;

}  // namespace xpurt
