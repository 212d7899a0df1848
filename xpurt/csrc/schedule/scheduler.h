// What the scheduler is told of an ordinal's devices: what they cost, and which kind of
// them the program preferences for.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stream/stream.h"

namespace xpurt {

// What one device costs. Times in microseconds.
struct DeviceCost {
  double launch_us = 0;          // submit and wait for an empty kernel
  double bytes_per_us = 1;       // of memory that a kernel reads and writes
  double flops_per_us = 1;       // float32 operations
  double copy_launch_us = 0;     // of one copy from or to the home device
  double copy_bytes_per_us = 1;  // of such a copy
};

// An op, as far as its time depends on it.
struct Work {
  double flops = 0;
  double bytes = 0;  // read and written
  bool needs_fp64 = false;
  bool needs_fp16 = false;
  c10::ArrayRef<double> launches;  // by position; none: one
  c10::ArrayRef<const c10::StorageImpl*> reads;
  c10::ArrayRef<const c10::StorageImpl*> writes;
};

// Costs by position in the ordinal; kept until the mapping changes.
void set_device_costs(c10::DeviceIndex index, std::vector<DeviceCost> costs);

// Nothing if they are unknown.
std::vector<DeviceCost> device_costs(c10::DeviceIndex index);

// Whether measured curves are better known than the ordinal's device costs. Not after
// set_device_costs(): who sets costs wants these.
void use_cost_curves(c10::DeviceIndex index);
bool uses_cost_curves(c10::DeviceIndex index);

// The calling thread's preference: "cpu", "gpu" or "accelerator" devices first; an
// empty string takes it back. Returns the preference before.
std::string set_preference(const std::string& kind);

// The one that holds in this thread; empty: none.
std::string preference();
bool has_preference() noexcept;

// Preferences that hold now, in all threads.
int preferences_held() noexcept;

}  // namespace xpurt
