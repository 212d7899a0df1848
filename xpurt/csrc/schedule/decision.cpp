#include "schedule/decision.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "memory/replica/device_override.h"
#include "op/op_record.h"
#include "schedule/best_alone.h"
#include "schedule/cached_choice.h"
#include "schedule/device_report.h"
#include "schedule/explain.h"
#include "schedule/exploration.h"
#include "schedule/partition.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

// Cached choices are reused without a lock, so nothing is booked for them. On several
// devices only choices for work that blocks the host, or is too short to matter, are
// cached. Long work that blocks the host is not: see Note [Overlap].
constexpr double kTooShortToBook = 50;

// Microseconds that copying the results from one device to another takes. The results
// are not allocated yet: their size is estimated as all bytes but those of the operands
// that are read.
double results_us(const Work& work, const Ordinal& devices, size_t from, size_t to,
                  const std::vector<DeviceCost>& costs) {
  if (from == to) return 0;
  double read = 0;
  for (const c10::StorageImpl* storage : work.reads) {
    read += static_cast<double>(storage->nbytes());
  }
  const DeviceCost& link = costs[from == devices.home ? to : from];
  return link.copy_launch_us +
         std::max(work.bytes - read, 0.0) / link.copy_bytes_per_us;
}

// The position of the policy's candidate `i`. Home comes first: in a tie the policy
// takes the first candidate.
size_t home_first(size_t i, const Ordinal& devices) {
  return i == 0 ? devices.home : i == devices.home ? 0 : i;
}

// Note [Short ops]
// ~~~~~~~~~~~~~~~~
// If an op takes less than kLongUs on the device that is best alone, no operand is
// copied to another device for it. It has little to gain, and its times are mostly
// those of the host and of caches, which are predicted badly. And a program of such ops
// is not compared as a whole. A training step of ops of 100 us each was predicted to
// gain a third, and took twice as long, since its operands were copied back and forth.
// For the same reason such an op is not divided, and not tried on a device that its
// operands are not on.

// The index of the candidate that the policy chooses. At home, the better one of the
// row's kernel and the native kernel is offered.
size_t choose_candidate(const Work& work, const Ordinal& devices,
                        const std::vector<DeviceCost>& costs,
                        const Exploration& exploration, OnlinePolicy& policy,
                        Decision* decision) {
  const Candidates& candidates = decision->candidates;
  const size_t count = devices.devices.size();
  const size_t home_candidate = exploration.choose_at_home(candidates, devices.home);
  const size_t best = home_first(policy.best_alone(), devices);
  const double there_us =
      candidates[best == devices.home ? home_candidate : best].cost_us;
  Candidates offered;
  for (size_t i = 0; i < count; ++i) {
    const size_t position = home_first(i, devices);
    Candidate& offer =
        offered.emplace_back(candidates[i == 0 ? home_candidate : position]);
    if (i == 0) offer.best_us = candidates.back().offered_us();
    const bool may_move = there_us >= kLongUs || offer.moves_us <= 0;
    offer.leave_us =
        may_move ? results_us(work, devices, position, best, costs) : Candidate::kNever;
  }
  if (std::ranges::none_of(candidates, &Candidate::is_possible)) return home_candidate;
  const bool is_idle = std::ranges::all_of(
      offered, [&](const Candidate& each) { return each.free_us <= decision->now_us; });
  const size_t chosen = policy.choose(offered, decision->now_us, is_idle);
  decision->gained_us = policy.gained_us();
  return chosen == 0 ? home_candidate : home_first(chosen, devices);
}

void take(Decision* decision, size_t candidate, const Ordinal& devices) {
  const Candidate& taken = decision->candidates[candidate];
  decision->native = candidate == devices.devices.size();
  decision->position = decision->native ? devices.home : candidate;
  decision->cost_us = taken.cost_us;
  decision->moves_us = taken.moves_us;
  decision->finish_us = taken.finish_us();
}

// Records what was predicted for the calls that have reused the cached choice.
void report_reused(const StatisticsBucket& bucket, const Ordinal& devices,
                   uint32_t calls) {
  if (calls == 0) return;
  DecisionTimes& times =
      decision_times(*devices.devices[position_of(bucket.reused_by, devices)]);
  times.busy_us += bucket.reused_us * calls;
  times.gained_us += bucket.reused_gain_us * calls;
}

void report(const Decision& decision, const Ordinal& devices) {
  if (!std::isfinite(decision.cost_us)) return;
  if (decision.proportions.empty()) {
    DecisionTimes& times = decision_times(*devices.devices[decision.position]);
    times.busy_us += decision.cost_us;
    times.gained_us += decision.gained_us;
    return;
  }
  for (size_t position = 0; position < decision.proportions.size(); ++position) {
    const double proportion = decision.proportions[position];
    if (proportion <= 0) continue;
    DecisionTimes& times = decision_times(*devices.devices[position]);
    times.busy_us +=
        decision.booked_us[position] - decision.candidates[position].free_us;
    times.gained_us += decision.gained_us * proportion;
  }
}

void keep_choice(const Decision& decision, LearningMode mode, uint64_t word,
                 size_t candidate, StatisticsBucket& bucket) {
  if (mode == LearningMode::learns) {
    const CandidateStatistics& chosen = bucket.candidates[candidate];
    bucket.interval =
        sampling_interval(chosen.factor.count(), decision.cost_us, chosen.stall_us);
    bucket.calls_left.store(bucket.interval, std::memory_order_relaxed);
    bucket.reused_by = candidate;
    bucket.reused_us = decision.cost_us;
    bucket.reused_gain_us = decision.gained_us;
  }
  bucket.cached[static_cast<size_t>(mode)].store(word, std::memory_order_relaxed);
}

// The cached choice, as a decision; false if there is none.
bool reuse(const CallToDecide& call, c10::DeviceIndex index, const Ordinal& devices,
           uint64_t holders, Decision* decision) {
  const size_t count = devices.devices.size();
  const CachedChoice known =
      cached_choice(call.record, index, count, call.signature, call.elements, holders);
  if (known.candidate < 0) return false;
  QuickChoice{QuickTier::undecided, known.calls_left}.take();
  decision->native = known.candidate == static_cast<int>(count);
  decision->position = position_of(known.candidate, devices);
  return true;
}

// Adds a long op to the program's longest path.
void add_long_op(const CallToDecide& call, const Ordinal& devices, StreamClock& clock,
                 Decision* decision) {
  double least = Candidate::kNever;
  for (const Candidate& each : decision->candidates) {
    least = std::min(least, each.cost_us);
  }
  if (!std::isfinite(least)) return;
  // Not with a single limit: an op about as long would be counted by chance. And both
  // arms of a comparison count the same ops, though their learned times differ.
  bool& is_long = decision->bucket->is_long;
  if (!is_comparing(devices)) is_long = least >= (is_long ? kLongUs / 2 : kLongUs);
  if (!is_long) return;
  const bool blocks = Overlap(decision->candidates, devices.home, true).always_blocks();
  decision->path_us =
      clock.dependences.add_call(call.record, call.stack, least, blocks);
}

// Adds a long op to what is compared with the best device alone.
void count_in_program(const Decision& decision, const Stream& stream,
                      const StreamClock& clock) {
  if (decision.path_us <= 0) return;
  const Ordinal& devices = stream.ordinal();
  const size_t by_now = home_first(clock.policy.best_alone(), devices);
  const size_t best = baseline_position(devices, by_now);
  // Without what was learned: the arms learn separately, and are measured alike.
  const auto expected = [&](size_t candidate) {
    return decision.expected_us[candidate] / slowdown_of(devices, candidate).factor();
  };
  double alone = expected(best);
  if (best == devices.home) alone = std::min(alone, expected(devices.devices.size()));
  const bool elsewhere = !decision.proportions.empty() || decision.position != best;
  if (!std::isfinite(alone)) return;
  compare_with_baseline(stream, by_now,
                        {.kind = reinterpret_cast<uintptr_t>(decision.bucket),
                         .alone_us = alone,
                         .elsewhere = elsewhere,
                         .now_us = decision.now_us});
}

// Makes the next calls timed samples where the clock shows that a device is late.
void suspect_late_devices(const Ordinal& devices, StreamClock& clock) {
  for (size_t position = 0; position < clock.marks.size(); ++position) {
    if (!std::exchange(clock.marks[position].is_late, false)) continue;
    if (slowdown_of(devices, position).suspect()) change_choices();
  }
}

}  // namespace

Decision decide(const CallToDecide& call, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  const c10::DeviceIndex index = stream.id().device_index();
  const size_t count = devices.devices.size();
  const bool several = count > 1;
  const Work work = work_of(call.cost, devices);
  const LearningMode mode = learning_mode();
  const bool planned = mode == LearningMode::planned;
  const bool learns = mode == LearningMode::learns;
  const bool cacheable =
      !is_explaining() &&
      (!several || (!planned && !has_preference() && !is_home_only() &&
                    count <= kHolderBits && stream.idle()));
  Decision decision;
  decision.costs_version = costs_version();
  uint64_t holders = 1;
  const uint64_t version = choice_version();
  if (cacheable && several) {
    holders = work.residency.holders();
    if (reuse(call, index, devices, holders, &decision)) return decision;
  }
  const auto costs = several ? device_costs(index) : std::vector<DeviceCost>();
  std::lock_guard<Mutex> lock(scheduler_mutex());
  const FoundBucket found =
      find_or_make_bucket(call.record, index, call.signature, call.elements);
  StatisticsBucket& bucket = found.bucket();
  decision.bucket = &bucket;
  decision.sizes = &found.sizes;
  StreamClock* clock = several && !planned ? &clock_of(stream) : nullptr;
  if (clock != nullptr) {
    decision.now_us = now_us();
    clock->catch_up(stream, decision.now_us);
    if (learns) suspect_late_devices(devices, *clock);
  }
  if (several && costs.empty()) {
    decision.position = devices.home;
    decision.native = call.native && !call.home_kernel;
    return decision;
  }
  if (several) {
    compare(call, work, stream, costs, found, clock, learns, &decision);
  } else {
    compare_on_one(call, devices, found, learns, &decision);
  }
  // Calls since the last full decision: those that reused the cached one, and this one.
  const uint32_t left = std::min(bucket.interval, bucket.calls_left.load());
  const uint32_t reused = bucket.interval - left;
  bucket.interval = left;
  if (several) report_reused(bucket, devices, reused);
  const bool samples = learns && call.learns;
  decision.may_try = samples && !is_timing_program(devices);
  double parallelism = 1;
  if (clock != nullptr) {
    add_long_op(call, devices, *clock, &decision);
    parallelism = clock->dependences.parallelism();
  }
  const Exploration exploration(found, call.build_us, samples ? 1 + reused : 0,
                                parallelism,
                                several && is_divisible(call, work, stream));
  if (learns) exploration.hold_back_unproven(&decision.candidates, devices.home);
  if (decision.path_us > 0) {
    decision.overlapped_us =
        Overlap(decision.candidates, devices.home, false).us(parallelism);
  }
  size_t best = call.native ? count : devices.home;
  if (clock != nullptr) {
    best =
        choose_candidate(work, devices, costs, exploration, clock->policy, &decision);
  } else if (learns) {
    best = exploration.choose_at_home(decision.candidates, devices.home);
  } else {
    best = earliest(decision.candidates, best);
  }
  size_t candidate = best;
  if (samples && decision.may_try) {
    candidate = exploration.trial(decision.candidates, best);
    decision.explores = candidate != best;
  }
  take(&decision, candidate, devices);
  if (decision.explores) {
    decision.gained_us += decision.candidates[best].finish_us() -
                          decision.candidates[candidate].finish_us();
  }
  if (clock != nullptr) {
    partition_call(call, work, stream, costs, found, *clock, 1 + reused, &decision);
    report(decision, devices);
    if (learns && !has_preference()) count_in_program(decision, stream, *clock);
    if (!decision.proportions.empty()) return decision;
    if (!decision.native)
      clock->book(decision.position, decision.finish_us, decision.now_us);
  }
  if (samples) {
    const CandidateStatistics& chosen = bucket.candidates[candidate];
    const bool is_due = is_sample_due(
        bucket, chosen.factor, decision.candidates[candidate].cost_us, chosen.stall_us);
    decision.timed = decision.explores || is_due ||
                     (several && slowdown_of(devices, candidate).wants_samples());
  }
  const bool is_short = decision.native ? !bucket.is_long || is_settled_alone(devices)
                                        : decision.cost_us < kTooShortToBook;
  const bool lasts = !decision.timed && !decision.provisional && (samples || !learns);
  if (cacheable && (!several || is_short) && lasts) {
    keep_choice(decision, mode, choice_word(version, holders, candidate), candidate,
                bucket);
  }
  return decision;
}

size_t choose_position(const Work& work, Stream& stream, const Decision* decision) {
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1) return devices.home;
  if (decision == nullptr || decision->native) return choose_by_costs(work, stream);
  const size_t position = must_run_at_home(work) ? devices.home : decision->position;
  if (decision->finish_us > 0 && !is_deterministic()) {
    std::lock_guard<Mutex> lock(scheduler_mutex());
    Backlog& backlog = clock_of(stream).backlog;
    for (const c10::StorageImpl* storage : work.writes) {
      backlog.book_write(storage->data(), decision->finish_us);
    }
  }
  return position;
}

}  // namespace xpurt
