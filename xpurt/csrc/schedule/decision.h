// The scheduler's decision for one call of an op, and what is learned from the call.
#pragma once

#include <ATen/core/stack.h>

#include "schedule/candidates.h"
#include "schedule/device_statistics.h"
#include "schedule/policy.h"

namespace xpurt {

struct OpRecord;
struct RowKernel;

// A call that a row accepts.
struct CallToDecide {
  OpRecord& record;
  const RowKernel& row;
  const CallSignature& signature;
  int64_t elements;
  const OpCost& cost;
  bool native = false;             // PyTorch's CPU kernel may run it, at home
  bool home_kernel = false;        // the row's kernel is a candidate at home
  bool learns = false;             // the call may be timed
  double build_us = 0;             // expected, of a kernel that has not run yet
  const torch::jit::Stack& stack;  // its arguments are at the end
};

struct Decision {
  size_t position = 0;
  bool native = false;
  bool timed = false;           // the call is a timed sample
  bool may_try = false;         // a trial may begin or go on
  bool explores = false;        // the policy had chosen another candidate
  bool provisional = false;     // a candidate is left out while its kernel is built
  bool copies_to_stay = false;  // the operands are copied for later calls
  double cost_us = 0;           // predicted, without copies
  double moves_us = 0;          // predicted, of the copies
  double finish_us = 0;
  double now_us = 0;     // time of the decision
  double gained_us = 0;  // predicted, over the best device alone
  // Of a long op on several devices: when its results are there, on the longest path of
  // the program (see Note [Overlap]); else 0. And its predicted time on home's queue
  // beside other work.
  double path_us = 0;
  double overlapped_us = Candidate::kNever;
  c10::SmallVector<double, 4> expected_us;  // by candidate, without learned factors
  Candidates candidates;                    // the positions, then the native kernel
  std::vector<double> proportions;          // by position, if several devices do the op
  c10::SmallVector<double, 4> booked_us;    // by position: when its shard ends
  // Where the call's times are recorded.
  StatisticsBucket* bucket = nullptr;
  StatisticsBySize* sizes = nullptr;
  uint64_t costs_version = 0;

  FoundBucket found() const {
    return {*sizes, static_cast<size_t>(bucket - sizes->buckets.data())};
  }
};

// The candidate that runs the call: a position, or behind them the native kernel.
inline size_t candidate_of(const Decision& decision, const Ordinal& devices) {
  return decision.native ? devices.devices.size() : decision.position;
}

// Chooses the candidate that runs the call, and whether the call is a timed sample. A
// choice that is cached is reused on several devices: see Note [Cached choices]. On one
// device the caller looks it up before.
Decision decide(const CallToDecide& call, Stream& stream);

// Records a measured time of a candidate in its bucket. `own_us`: the time of the whole
// call without copies (of a shard: scaled to the whole). `times`: predicted and
// measured time of what ran, copies included, for the report. `stall_us`: for which the
// sample delayed the host. Under the mutex.
struct PredictedAndMeasured {
  double predicted_us, measured_us;
};
void record_time(const Decision& decision, Stream& stream, size_t candidate,
                 double own_us, PredictedAndMeasured times, double stall_us,
                 LearnedCost CandidateStatistics::* learned);

// Note [New pages]
// ~~~~~~~~~~~~~~~~
// The system maps newly allocated memory page by page as it is first touched, which
// takes several times as long as an op on it. Such a time does not predict the next
// call, so it is discarded. But not every such time is: some ops allocate memory in all
// of their calls. True if the sample is to be discarded.
bool discard_sample(const Decision& decision);

// Records the time until the call had finished, copies included.
void record_call_time(const Decision& decision, Stream& stream, double us,
                      double stall_us);

// Whether costs are still those of the decision, so that its time can be recorded.
bool is_current(const Decision& decision);

// Records the results of a call that has run: they are at the end of the stack.
void record_results(const Decision& decision, const OpRecord& record, Stream& stream,
                    const torch::jit::Stack& stack);

// Takes back the predicted time of a call that is not submitted as decided, on all
// devices that were to run it.
void take_back(const Decision& decision, Stream& stream);
// The same of one shard of a divided call.
void take_back_shard(const Decision& decision, Stream& stream, size_t position);

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

}  // namespace xpurt
