// What the scheduler is given: the costs of an ordinal's devices, and the kind of
// device that the program prefers.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>
#include <vector>

#include "memory/replica/residency.h"
#include "stream/stream.h"

namespace xpurt {

// The costs of one device. Times are in microseconds.
struct DeviceCost {
  double launch_us = 0;          // submit and wait for an empty kernel
  double bytes_per_us = 1;       // of memory that a kernel reads and writes
  double flops_per_us = 1;       // float32 operations
  double copy_launch_us = 0;     // of one copy from or to the home device
  double copy_bytes_per_us = 1;  // of such a copy
};

// The properties of an op that its time and its possible devices depend on.
struct Work {
  double flops = 0;
  double bytes = 0;  // read and written
  bool needs_fp64 = false;
  bool needs_fp16 = false;
  c10::ArrayRef<double> launches;  // by position; empty: one launch each
  c10::ArrayRef<const c10::StorageImpl*> reads;
  c10::ArrayRef<const c10::StorageImpl*> writes;
  Residency residency;       // of these storages
  uint64_t whole_reads = 0;  // a bit per read: see OpCost

  // Whether each shard of a divided op reads the whole operand.
  bool reads_whole(size_t read) const { return (whole_reads >> read & 1) != 0; }
};

// Sets the costs by position in the ordinal; they are kept until the mapping changes.
// Raises ValueError if there is not one per device, or if a time is negative or a rate
// not positive.
void set_device_costs(c10::DeviceIndex index, std::vector<DeviceCost> costs);

// The costs by position; empty if they are unknown.
std::vector<DeviceCost> device_costs(c10::DeviceIndex index);

// Changes with the costs of the devices.
uint64_t device_costs_version() noexcept;

// Makes measured cost curves override the ordinal's device costs, until the next
// set_device_costs(), whose costs are then used.
void use_cost_curves(c10::DeviceIndex index);
bool uses_cost_curves(c10::DeviceIndex index);

// Sets the calling thread's preference: "cpu", "gpu" or "accelerator" devices first. An
// empty string removes it. Returns the previous preference. Raises ValueError for any
// other kind.
std::string set_preference(const std::string& kind);

// The preference of this thread; empty: none.
std::string preference();
bool has_preference() noexcept;

// The same, or else the kind of the GPU of an ordinal that overflows.
std::string preference(const Ordinal& devices);
bool has_preference(const Ordinal& devices) noexcept;

// Number of preferences set now, in all threads.
int preferences_held() noexcept;

}  // namespace xpurt
