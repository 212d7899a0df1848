// One call of an op: what the scheduler decides for it, and learns from it.
#pragma once

#include "candidates.h"
#include "op_places.h"
#include "policy.h"

namespace xpurt {

struct OpRecord;
struct RowKernel;

// A call that a row accepts, on an ordinal of several devices.
struct PlacedCall {
  OpRecord& record;
  const RowKernel& row;
  const CallLook& look;
  int64_t elements;
  const OpCost& cost;
  bool native = false;       // PyTorch's CPU kernel may run it, at home
  bool home_kernel = false;  // the row's kernel may be worth it, at home
  bool learns = false;       // its time may be taken
};

struct Placing {
  size_t position = 0;
  bool native = false;
  bool timed = false;   // the scheduler wants its time
  bool tried = false;   // another way was expected to be done before
  double cost_us = 0;   // predicted, without copies
  double moves_us = 0;  // of the copies
  double finish_us = 0;
  double now_us = 0;                        // when it was decided
  c10::SmallVector<double, 4> expected_us;  // by way, before anything was learned
  Candidates candidates;                    // by way: positions, then the native one
  std::vector<double> shares;               // by position, if they do it together
  PlaceBucket* bucket = nullptr;            // where it is learned
};

// Note [Cached decisions]
// ~~~~~~~~~~~~~~~~~~~~~~~
// On an idle stream nothing but the costs and the places of the operands has a say. So
// such a decision is kept in its bucket, with the devices that hold all operands, for
// as long as costs, devices and wishes stay what they are. It is taken again without a
// lock until the bucket's next turn to learn. With work pending every call is decided
// anew: the clocks have moved.
Placing place_call(const PlacedCall& call, Stream& stream);

// Whether PyTorch's CPU kernel at home was decided on for such calls while nothing is
// pending: a cached decision, for ops that are not looked at any closer.
bool is_placed_native(const OpRecord& record, c10::DeviceIndex index,
                      const CallLook& look);

// How long all of such a call takes at `way`, as one that took `times` with its copies,
// or its piece, tells. Under the mutex.
struct PredictedAndMeasured {
  double predicted_us, measured_us;
};
void note_time(const Placing& placing, Stream& stream, size_t way, double own_us,
               PredictedAndMeasured times, LearnedCost PlaceWay::* learned);

// Note [New pages]
// ~~~~~~~~~~~~~~~~
// Memory that was just asked of the system is given page by page as it is touched,
// which takes several times as long as an op on it. Such a time tells nothing of the
// next call, so it is left out; but not each time, since some ops ask for memory in all
// of their calls.
bool is_excused(const Placing& placing);

// How long the call took until it had finished, copies included.
void note_placed(const Placing& placing, Stream& stream, double us);

// The kernel that the call needs on the device is still being built: for a while other
// ways are taken. Whether the next best is the native kernel.
bool note_building(const Placing& placing, Stream& stream,
                   const PhysicalDevice& device);

// The position in the stream's ordinal where work of a call runs: the one that was
// decided for the call; where nothing was (nullptr), the one with the earliest
// predicted finish, by costs alone. The home device where the costs are unknown or a
// storage may not leave home. A device that lacks a dtype of the work is not chosen,
// unless all of them do.
size_t choose_position(const Work& work, Stream& stream, const Placing* decision);

// Called with what a kernel was submitted as: see Note [Predicted clocks].
void note_submitted(Stream& stream, size_t position, const sycl::event& done);

// Predicted against measured, of the calls that were timed; and what all were predicted
// to take. By physical device.
struct PlacedTimes {
  uint64_t calls = 0;  // that were timed
  double predicted_us = 0;
  double measured_us = 0;
  double busy_us = 0;  // predicted, of all calls
};
PlacedTimes placed_times(int physical_device_id);
void reset_placed_times();

}  // namespace xpurt
