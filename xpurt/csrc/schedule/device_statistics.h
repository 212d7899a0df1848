// Learned times of an op's calls on the candidates of an ordinal, and its last choices.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "schedule/call_signature.h"
#include "schedule/learning_mode.h"
#include "schedule/planning/copy_regret.h"
#include "schedule/planning/learned_cost.h"
#include "schedule/planning/lost_division.h"

namespace xpurt {

struct OpRecord;

// A candidate to run a call: a kernel on the device at `position`, or PyTorch's CPU
// kernel at home.
struct CandidateStatistics {
  LearnedCost factor;        // measured over expected time
  LearnedCost of_shards;     // the same of its shards, scaled to the whole call
  double stall_us = 0;       // for which its last timed sample delayed the host
  double backoff = 1;        // doubles with each lost trial
  int trials = 0;            // timed samples of the trial that are still to come
  bool is_compared = false;  // they are a part of a comparison
  bool is_off = false;       // the last sample was far from the estimate
  bool is_stale = false;     // another candidate's time has changed since
  double false_alarms = 1;   // doubles with each trial that this caused, and was lost
  double not_before_us = 0;  // not chosen before: its kernel is being built
  double regret_us = 0;      // time lost by not running it, while it is new
};

// Calls of one op, type, layout and size class. Guarded by the scheduler's mutex,
// except the atomics.
struct StatisticsBucket {
  // The last choice on an idle stream, by learning mode: see Note [Cached choices].
  std::array<std::atomic<uint64_t>, kLearningModes> cached{};
  std::atomic<uint32_t> calls_left{0};          // calls that may reuse it
  uint32_t interval = 0;                        // initial value of calls_left
  std::vector<CandidateStatistics> candidates;  // by position, then the native kernel
  // Those of the other arm, if there was one: see Note [Baseline].
  std::vector<CandidateStatistics> of_other_arm;
  bool is_alone = false;      // the arm
  size_t in_use = 0;          // the candidate at home that was chosen last
  double spent_us = 0;        // predicted, since the last trial
  size_t reused_by = 0;       // the candidate of the cached choice
  double reused_us = 0;       // predicted, of a call that reuses the choice
  double reused_gain_us = 0;  // against the best device alone, of such a call
  uint32_t calls = 0;         // since the last timed sample
  bool is_long = false;       // its calls take about 200 us or more: see kLongUs
  double regret_us = 0;       // time lost by not giving shards to a new device
  int discarded = 0;          // samples discarded in a row
  CopyRegret copies;          // of operands for divided calls
  CopyRegret staying;         // of operands to a device that is short of memory
  LostDivision lost_division;

  void forget_choices();
  void change_arm();
};

struct StatisticsBySize {
  std::array<StatisticsBucket, kSizeClasses> buckets;
  uint64_t built = 0;  // one bit for each candidate that has run
};

// The statistics of one ordinal. After a change of the mapping or of the costs, the
// next placement whose ordinal has as many devices clears and reuses them.
struct DeviceStatistics {
  c10::DeviceIndex ordinal = 0;
  size_t devices = 0;
  uint64_t version = 0;              // of the placement and the costs
  DeviceStatistics* next = nullptr;  // of another ordinal, or number of devices
  std::array<std::atomic<StatisticsBySize*>, kTypeLayouts>
      sizes{};  // made at the first use
};

// The bucket of a call on an ordinal of so many devices; nullptr if there is none yet.
// Takes no lock. Its contents may be out of date, except cached choices, which have a
// version.
StatisticsBucket* find_bucket(const OpRecord& record, c10::DeviceIndex index,
                              size_t devices, const CallSignature& signature,
                              int64_t elements);

// A bucket, with the buckets of all sizes. Under the scheduler's mutex.
struct FoundBucket {
  StatisticsBySize& sizes;
  size_t size;
  StatisticsBucket& bucket() const { return sizes.buckets[size]; }
};
FoundBucket find_or_make_bucket(OpRecord& record, c10::DeviceIndex index,
                                const CallSignature& signature, int64_t elements);

// Measured over expected time of a candidate, from the bucket or its nearest measured
// neighbour. Without any, that of `like`, another candidate on the same device: an op
// costs more or less than the probe op of its class, by about the same factor on both.
// 1 if neither is measured.
double learned_factor(const FoundBucket& found, size_t candidate, size_t like);

// Whether the candidate was timed in the bucket or in such a neighbour.
bool is_measured(const FoundBucket& found, size_t candidate);

// Discards everything that was chosen and learned, of all ops or of one.
void forget_statistics();
void forget_statistics(OpRecord& record);

// What was learned of the calls in one bucket. For tests.
struct LearnedCalls {
  std::string op;
  c10::DeviceIndex ordinal;
  char letter;  // '?' for a type without kernels
  OperandLayout layout;
  int size;                     // binary logarithm of the elements, rounded down
  uint32_t calls_left;          // calls to the next timed sample
  size_t in_use;                // the candidate at home that was chosen last
  std::vector<uint64_t> timed;  // timed samples, by candidate
  std::vector<double> factors;  // measured over expected time; 1 if not measured
};
// Of buckets with timed samples.
std::vector<LearnedCalls> learned_calls();

}  // namespace xpurt
