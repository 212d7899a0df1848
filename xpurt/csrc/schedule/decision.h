// The scheduler's decision for one call of an op, and what is learned from the call.
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
  bool home_kernel = false;  // the row's kernel is a candidate at home
  bool learns = false;       // the call may be timed
};

struct Decision {
  size_t position = 0;
  bool native = false;
  bool timed = false;     // the call is a timed sample
  bool explores = false;  // the policy had chosen another candidate
  double cost_us = 0;     // predicted, without copies
  double moves_us = 0;    // predicted, of the copies
  double finish_us = 0;
  double now_us = 0;                        // time of the decision
  c10::SmallVector<double, 4> expected_us;  // by candidate, without learned factors
  Candidates candidates;                    // the positions, then the native kernel
  std::vector<double> proportions;          // by position, if several devices do the op
  StatisticsBucket* bucket = nullptr;       // where the call's times are recorded
};

// Note [Cached decisions]
// ~~~~~~~~~~~~~~~~~~~~~~~
// On an idle stream a decision depends only on the costs and on which devices hold the
// operands. So such a decision is kept in its bucket, with the devices that hold all
// operands, until costs, devices or preferences change. It is reused without a lock
// until the bucket's next timed sample. While work is pending, every call is decided
// anew, since the clocks have moved.
Decision decide(const CallToDecide& call, Stream& stream);

// Whether a cached decision for such calls is PyTorch's CPU kernel at home. If so,
// counts the call. The caller checks that the stream is idle and the operands are valid
// at home.
bool is_decided_native(const OpRecord& record, c10::DeviceIndex index,
                       const CallSignature& signature);

// Records a measured time of a candidate in its bucket. `own_us`: the time of the whole
// call without copies (of a shard: scaled to the whole). `times`: predicted and
// measured time of what ran, copies included, for the report. Under the mutex.
struct PredictedAndMeasured {
  double predicted_us, measured_us;
};
void record_time(const Decision& decision, Stream& stream, size_t candidate,
                 double own_us, PredictedAndMeasured times,
                 LearnedCost CandidateStatistics::* learned);

// Note [New pages]
// ~~~~~~~~~~~~~~~~
// The system maps newly allocated memory page by page as it is first touched, which
// takes several times as long as an op on it. Such a time does not predict the next
// call, so it is discarded. But not every such time is: some ops allocate memory in all
// of their calls. True if the sample is to be discarded.
bool discard_sample(const Decision& decision);

// Records the time until the call had finished, copies included.
void record_call_time(const Decision& decision, Stream& stream, double us);

// Records that the kernel for the call is still being built for the device. The device
// is not chosen for a while. Returns whether the next best candidate is the native
// kernel.
bool record_building(const Decision& decision, Stream& stream,
                     const PhysicalDevice& device);

// The position in the stream's ordinal where the work of a call runs. It is the
// position of the decision; without one (nullptr), the position with the earliest
// predicted finish by costs alone. It is the home device if a storage may not leave
// home, or if the costs are unknown and no preference excludes it. A device that lacks
// a dtype of the work is not chosen, unless all devices lack it.
size_t choose_position(const Work& work, Stream& stream, const Decision* decision);

// Receives the event of a submitted kernel: see Note [Predicted clocks]. Called without
// the lock of a stream.
void record_submission(Stream& stream, size_t position, const sycl::event& done);

// Predicted and measured times of the timed calls, and the predicted time of all calls,
// by physical device.
struct DecisionTimes {
  uint64_t calls = 0;  // timed calls
  double predicted_us = 0;
  double measured_us = 0;
  double busy_us = 0;  // predicted time of all calls
};
DecisionTimes decision_times(int physical_device_id);
void reset_decision_times();

}  // namespace xpurt
