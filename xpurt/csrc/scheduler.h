// Which device of an ordinal runs an op: the one predicted to finish it first.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/ArrayRef.h>

#include <vector>

#include "stream.h"

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
  c10::ArrayRef<const c10::StorageImpl*> reads;
  c10::ArrayRef<const c10::StorageImpl*> writes;
};

// Costs by position in the ordinal; kept until the mapping changes.
void set_device_costs(c10::DeviceIndex index, std::vector<DeviceCost> costs);

// The position in the stream's ordinal with the earliest predicted finish. The home
// device where the costs are unknown or a storage may not leave home. A device that
// lacks a dtype of the work is not chosen, unless all of them do.
size_t choose_position(const Work& work, Stream& stream);

// While one lives, this thread's ops run on home devices: what to do when another
// device has no room.
class StayHome {
 public:
  StayHome();
  ~StayHome();
  StayHome(const StayHome&) = delete;
  StayHome& operator=(const StayHome&) = delete;

 private:
  bool before_;
};

// Whether one lives in this thread.
bool must_stay_home();

// Predicted time of the work on one device, copies of what is not valid there
// included.
double predicted_us(const Work& work, Stream& stream, size_t position);

// The calling thread's wish: "cpu", "gpu" or "accelerator" devices first; an empty
// string takes it back. Returns the wish before.
std::string set_preference(const std::string& kind);

}  // namespace xpurt
