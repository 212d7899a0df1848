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
#include "schedule/staying.h"
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
  const Candidate& there = candidates[best == devices.home ? home_candidate : best];
  const double there_us = there.cost_us + there.streams_us;
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

// The steps of one decision.
class Deciding {
 public:
  Deciding(const CallToDecide& call, Stream& stream)
      : call_(call),
        stream_(stream),
        devices_(stream.ordinal()),
        work_(work_of(call.cost, devices_)) {}

  Decision run() {
    decision_.costs_version = costs_version();
    if (reuses_cached()) return decision_;
    if (several_) costs_ = device_costs(index_);
    compare_and_choose();
    if (!costs_.empty()) {
      record_saved(work_, devices_, costs_, decision_.candidates);
    }
    return decision_;
  }

 private:
  void compare_and_choose() {
    std::lock_guard<Mutex> lock(scheduler_mutex());
    const FoundBucket found =
        find_or_make_bucket(call_.record, index_, call_.signature, call_.elements);
    look_at_clock(found);
    if (several_ && costs_.empty()) return at_home();
    if (several_) {
      compare(call_, work_, stream_, costs_, found, clock_, learns_, &decision_);
    } else {
      compare_on_one(call_, devices_, found, learns_, &decision_);
    }
    const uint32_t calls = calls_since_the_last(found.bucket());
    const size_t candidate = choose(found, calls);
    if (clock_ != nullptr) {
      partition_call(call_, work_, stream_, costs_, found, *clock_, calls, &decision_);
      report(decision_, devices_);
      if (learns_ && !has_preference(devices_))
        count_in_program(decision_, stream_, *clock_);
      if (!decision_.proportions.empty()) return;
      if (!decision_.native) {
        clock_->book(decision_.position, decision_.finish_us, decision_.now_us);
      }
    }
    decision_.timed = samples_ && is_sample(candidate);
    keep(candidate);
  }

  bool reuses_cached() {
    version_ = choice_version();
    if (!cacheable_ || !several_) return false;
    holders_ = work_.residency.holders();
    return reuse(call_, index_, devices_, holders_, &decision_);
  }

  void look_at_clock(const FoundBucket& found) {
    decision_.bucket = &found.bucket();
    decision_.sizes = &found.sizes;
    if (!several_ || mode_ == LearningMode::planned) return;
    clock_ = &clock_of(stream_);
    decision_.now_us = now_us();
    clock_->catch_up(stream_, decision_.now_us);
    if (learns_) suspect_late_devices(devices_, *clock_);
  }

  // Of devices without costs.
  void at_home() {
    decision_.position = devices_.home;
    decision_.native = call_.native && !call_.home_kernel;
  }

  // Those that reused the cached choice, and this one.
  uint32_t calls_since_the_last(StatisticsBucket& bucket) {
    const uint32_t left = std::min(bucket.interval, bucket.calls_left.load());
    const uint32_t reused = bucket.interval - left;
    bucket.interval = left;
    if (several_) report_reused(bucket, devices_, reused);
    return 1 + reused;
  }

  // The candidate that is best, or is tried in its place.
  size_t choose(const FoundBucket& found, uint32_t calls) {
    decision_.may_try = samples_ && !is_timing_program(devices_);
    double parallelism = 1;
    if (clock_ != nullptr) {
      add_long_op(call_, devices_, *clock_, &decision_);
      parallelism = clock_->dependences.parallelism();
    }
    const Exploration exploration(found, call_.build_us, samples_ ? calls : 0,
                                  parallelism,
                                  several_ && is_divisible(call_, work_, stream_));
    if (learns_) exploration.hold_back_unproven(&decision_.candidates, devices_.home);
    if (decision_.path_us > 0) {
      decision_.overlapped_us =
          Overlap(decision_.candidates, devices_.home, false).us(parallelism);
    }
    size_t best = best_by(exploration);
    if (several_) {
      const auto position = position_to_copy_to(work_, devices_, decision_.candidates,
                                                best, *decision_.bucket);
      decision_.copies_to_stay = position.has_value();
      best = position.value_or(best);
    }
    const size_t taken =
        decision_.may_try ? exploration.trial(decision_.candidates, best) : best;
    take(&decision_, taken, devices_);
    decision_.explores = taken != best;
    if (decision_.explores) {
      decision_.gained_us += decision_.candidates[best].finish_us() -
                             decision_.candidates[taken].finish_us();
    }
    return taken;
  }

  size_t best_by(const Exploration& exploration) {
    if (clock_ != nullptr) {
      return choose_candidate(work_, devices_, costs_, exploration, clock_->policy,
                              &decision_);
    }
    if (learns_) return exploration.choose_at_home(decision_.candidates, devices_.home);
    return earliest(decision_.candidates, call_.native ? count_ : devices_.home);
  }

  bool is_sample(size_t candidate) const {
    StatisticsBucket& bucket = *decision_.bucket;
    const CandidateStatistics& chosen = bucket.candidates[candidate];
    return decision_.explores ||
           is_sample_due(bucket, chosen.factor, decision_.candidates[candidate].cost_us,
                         chosen.stall_us) ||
           (several_ && slowdown_of(devices_, candidate).wants_samples());
  }

  // Caches the choice if the next call may reuse it.
  void keep(size_t candidate) {
    StatisticsBucket& bucket = *decision_.bucket;
    const bool is_short = decision_.native
                              ? !bucket.is_long || is_settled_alone(devices_)
                              : decision_.cost_us < kTooShortToBook;
    const bool lasts = !decision_.timed && !decision_.provisional &&
                       !decision_.copies_to_stay && (samples_ || !learns_);
    if (!cacheable_ || (several_ && !is_short) || !lasts) return;
    const uint64_t word = choice_word(version_, holders_, candidate);
    keep_choice(decision_, mode_, word, candidate, bucket);
  }

  const CallToDecide& call_;
  Stream& stream_;
  const Ordinal& devices_;
  const Work work_;
  const c10::DeviceIndex index_ = stream_.id().device_index();
  const size_t count_ = devices_.devices.size();
  const bool several_ = count_ > 1;
  const LearningMode mode_ = learning_mode();
  const bool learns_ = mode_ == LearningMode::learns;
  const bool samples_ = learns_ && call_.learns;
  const bool cacheable_ =
      !is_explaining() &&
      (!several_ || (mode_ != LearningMode::planned && !has_preference(devices_) &&
                     !is_home_only() && count_ <= kHolderBits && stream_.idle() &&
                     !work_.residency.is_short_of_memory()));
  uint64_t version_ = 0;
  uint64_t holders_ = 1;
  std::vector<DeviceCost> costs_;
  StreamClock* clock_ = nullptr;  // of several devices whose choices are not planned
  Decision decision_;
};

}  // namespace

Decision decide(const CallToDecide& call, Stream& stream) {
  return Deciding(call, stream).run();
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
