// One call of an op: what the scheduler decides for it, and learns from it.
#pragma once

#include "schedule/candidates.h"
#include "schedule/device_statistics.h"
#include "schedule/policy.h"

namespace xpurt {

struct OpRecord;
struct RowKernel;

// A call that a row accepts, on an ordinal of several devices.
struct CallToDecide {
  OpRecord& record;
  const RowKernel& row;
  const CallSignature& signature;
  int64_t elements;
  const OpCost& cost;
  bool native = false;       // PyTorch's CPU kernel may run it, at home
  bool home_kernel = false;  // the row's kernel may be worth it, at home
  bool learns = false;       // its time may be taken
};

struct Decision {
  size_t position = 0;
  bool native = false;
  bool timed = false;     // the scheduler wants its time
  bool explores = false;  // another candidate was expected to be done before
  double cost_us = 0;     // predicted, without copies
  double moves_us = 0;    // of the copies
  double finish_us = 0;
  double now_us = 0;                        // when it was decided
  c10::SmallVector<double, 4> expected_us;  // by candidate, before anything was learned
  Candidates candidates;               // by candidate: positions, then the native one
  std::vector<double> proportions;     // by position, if they do it together
  StatisticsBucket* bucket = nullptr;  // where it is learned
};

// Note [Cached decisions]
// ~~~~~~~~~~~~~~~~~~~~~~~
// On an idle stream nothing but the costs and the places of the operands has a say. So
// such a decision is kept in its bucket, with the devices that hold all operands, for
// as long as costs, devices and preferences stay what they are. It is taken again
// without a lock until the bucket's next sample. With work pending every call is
// decided anew: the clocks have moved.
Decision decide(const CallToDecide& call, Stream& stream);

// Whether PyTorch's CPU kernel at home was decided on for such calls while nothing is
// pending: a cached decision, for ops that are not looked at any closer.
bool is_decided_native(const OpRecord& record, c10::DeviceIndex index,
                       const CallSignature& signature);

// How long all of such a call takes as `candidate`, as one that took `times` with its
// copies, or its shard, tells. Under the mutex.
struct PredictedAndMeasured {
  double predicted_us, measured_us;
};
void record_time(const Decision& decision, Stream& stream, size_t candidate,
                 double own_us, PredictedAndMeasured times,
                 LearnedCost CandidateStatistics::* learned);

// Note [New pages]
// ~~~~~~~~~~~~~~~~
// Memory that was just asked of the system is given page by page as it is touched,
// which takes several times as long as an op on it. Such a time tells nothing of the
// next call, so it is left out; but not each time, since some ops ask for memory in all
// of their calls.
bool discard_sample(const Decision& decision);

// How long the call took until it had finished, copies included.
void record_call_time(const Decision& decision, Stream& stream, double us);

// The kernel that the call needs on the device is still being built: for a while other
// candidates are taken. Whether the next best is the native kernel.
bool record_building(const Decision& decision, Stream& stream,
                     const PhysicalDevice& device);

// The position in the stream's ordinal where work of a call runs: the one that was
// decided for the call; where nothing was (nullptr), the one with the earliest
// predicted finish, by costs alone. The home device where the costs are unknown or a
// storage may not leave home. A device that lacks a dtype of the work is not chosen,
// unless all of them do.
size_t choose_position(const Work& work, Stream& stream, const Decision* decision);

// Called with what a kernel was submitted as: see Note [Predicted clocks].
void record_submission(Stream& stream, size_t position, const sycl::event& done);

// Predicted against measured, of the calls that were timed; and what all were predicted
// to take. By physical device.
struct DecisionTimes {
  uint64_t calls = 0;  // that were timed
  double predicted_us = 0;
  double measured_us = 0;
  double busy_us = 0;  // predicted, of all calls
};
DecisionTimes decision_times(int physical_device_id);
void reset_decision_times();

}  // namespace xpurt
