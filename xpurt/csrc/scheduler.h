// Which device of an ordinal runs an op: the one predicted to finish it first.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <limits>
#include <string>
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
  c10::ArrayRef<double> launches;  // by position; none: one
  c10::ArrayRef<const c10::StorageImpl*> reads;
  c10::ArrayRef<const c10::StorageImpl*> writes;
};

// Costs by position in the ordinal; kept until the mapping changes.
void set_device_costs(c10::DeviceIndex index, std::vector<DeviceCost> costs);

// Nothing if they are unknown.
std::vector<DeviceCost> device_costs(c10::DeviceIndex index);

// One way to run an op, as the choice sees it. Times are microseconds of one clock.
struct Candidate {
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  double free_us = 0;       // when its queue is predicted to be free
  double ready_us = 0;      // when the operands are predicted to be there
  double cost_us = kNever;  // of the work itself; infinite where it cannot run
  double moves_us = 0;      // of the copies that `ready_us` includes
  bool held_back = false;   // it is not worth a trial yet: see Note [New ways]

  double start_us() const { return free_us > ready_us ? free_us : ready_us; }
  double finish_us() const { return start_us() + cost_us; }
  bool can_run() const { return cost_us < kNever; }
  bool is_possible() const { return can_run() && !held_back; }
  double offered_us() const { return held_back ? kNever : cost_us; }
};
using Candidates = c10::SmallVector<Candidate, 4>;

// The position in the stream's ordinal with the earliest predicted finish. The home
// device where the costs are unknown or a storage may not leave home. A device that
// lacks a dtype of the work is not chosen, unless all of them do. Inside of a
// PlacedScope, what was decided there.
size_t choose_position(const Work& work, Stream& stream);

// In which proportions, by position, the devices would share work that can be divided,
// by costs alone, so that all end at once; their sum is 1. Empty where one device alone
// is expected to be about as fast.
std::vector<double> shares_of(const Work& work, Stream& stream);

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

// The calling thread's wish: "cpu", "gpu" or "accelerator" devices first; an empty
// string takes it back. Returns the wish before.
std::string set_preference(const std::string& kind);

// Wishes that hold now, in all threads.
int preferences_held() noexcept;

}  // namespace xpurt
