// Learned times of an op's calls on the devices of an ordinal, and the last decisions.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "schedule/planning/copy_regret.h"
#include "schedule/planning/learned_cost.h"
#include "schedule/tier_choice.h"

namespace xpurt {

// A candidate to run a call: a kernel on the device at `position`, or PyTorch's CPU
// kernel at home.
struct CandidateStatistics {
  LearnedCost factor;        // measured over expected time
  LearnedCost of_shards;     // the same of its shards, scaled to the whole call
  double backoff = 1;        // doubles with each trial
  int trials = 0;            // timed samples of the trial that are still to come
  double not_before_us = 0;  // not chosen before: its kernel is being built
  double regret_us = 0;      // time lost by not running it, while it is new
};

// Calls of one op, type, layout and size class. Guarded by the scheduler's mutex,
// except the two atomics.
struct StatisticsBucket {
  // The last decision on an idle stream: see Note [Cached decisions].
  std::atomic<uint64_t> cached{0};
  std::atomic<uint32_t> calls_left{0};          // calls that may reuse it
  uint32_t interval = 0;                        // initial value of calls_left
  std::vector<CandidateStatistics> candidates;  // by position, then the native kernel
  double spent_us = 0;                          // predicted, since the last trial
  uint32_t calls = 0;                           // since the last timed sample
  double regret_us = 0;  // time lost by not giving shards to a new device
  int discarded = 0;     // samples discarded in a row
  CopyRegret copies;     // of operands for divided calls
};

struct StatisticsBySize {
  std::array<StatisticsBucket, kSizeClasses> buckets;
};

// The statistics of one ordinal. After a change of the mapping, the next placement
// whose ordinal has as many devices clears and reuses them.
struct DeviceStatistics {
  c10::DeviceIndex ordinal = 0;
  size_t devices = 0;
  std::atomic<uint64_t> epoch{0};    // of the placement
  DeviceStatistics* next = nullptr;  // of another ordinal, or number of devices
  std::array<std::atomic<StatisticsBySize*>, kTypeLayouts>
      sizes{};  // made at the first use
};

// The bucket of a call; nullptr if there is none yet. Takes no lock.
StatisticsBucket* find_bucket(const OpRecord& record, c10::DeviceIndex index,
                              const CallSignature& signature, int64_t elements);

// A bucket, with the buckets of all sizes. Under the scheduler's mutex.
struct FoundBucket {
  StatisticsBySize& sizes;
  size_t size;
  StatisticsBucket& bucket() const { return sizes.buckets[size]; }
};
FoundBucket find_or_make_bucket(OpRecord& record, c10::DeviceIndex index,
                                const CallSignature& signature, int64_t elements);

// Measured over expected time of a candidate, from the bucket or its nearest measured
// neighbour; 1 if none is measured.
double learned_factor(const FoundBucket& found, size_t candidate);

// Whether the candidate was timed in the bucket or in such a neighbour.
bool is_measured(const FoundBucket& found, size_t candidate);

}  // namespace xpurt
