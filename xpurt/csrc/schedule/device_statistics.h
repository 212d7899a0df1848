// What was learned of an op's calls on the devices of an ordinal, and what was decided.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "schedule/learned_cost.h"
#include "schedule/tier_choice.h"

namespace xpurt {

// A candidate to run a call: a kernel on the device at `position`, or PyTorch's CPU
// kernel at home.
struct CandidateStatistics {
  LearnedCost factor;        // by which times differ from what is expected
  LearnedCost of_shards;     // the same, where it did a part, scaled to the whole
  double backoff = 1;        // grows with each trial that was lost
  int trials = 0;            // that are still to come
  double not_before_us = 0;  // its kernel is being built
  double regret_us = 0;      // by which it was predicted to be done earlier, while new
};

// Calls of one op, type, layout and size class. Guarded by the scheduler's mutex, but
// for `cached`.
struct StatisticsBucket {
  // What was decided last on an idle stream: see Note [Cached decisions].
  std::atomic<uint64_t> cached{0};
  std::atomic<uint32_t> calls_left{0};          // for which it holds
  uint32_t interval = 0;                        // what calls_left began with
  std::vector<CandidateStatistics> candidates;  // by position, then the native one
  double spent_us = 0;                          // predicted, since the last trial
  uint32_t calls = 0;                           // since the last one that was timed
  double regret_us = 0;  // by not sharing calls with a new device
  int discarded = 0;     // times that were left out since one was not
};

struct StatisticsBySize {
  std::array<StatisticsBucket, kSizeClasses> buckets;
};

// Of one ordinal. A change of the mapping leaves it to the next placement whose ordinal
// has as many devices: what was learned begins anew then.
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

// Under the scheduler's mutex. `near`: the buckets of all sizes.
struct FoundBucket {
  StatisticsBySize& sizes;
  size_t size;
  StatisticsBucket& bucket() const { return sizes.buckets[size]; }
};
FoundBucket find_or_make_bucket(OpRecord& record, c10::DeviceIndex index,
                                const CallSignature& signature, int64_t elements);

// By how much a candidate differs from what is expected, in a bucket or its nearest
// neighbour that knows; 1 where none does.
double learned_factor(const FoundBucket& found, size_t candidate);

// Whether the candidate was timed, in the bucket or such a neighbour.
bool is_measured(const FoundBucket& found, size_t candidate);

}  // namespace xpurt
