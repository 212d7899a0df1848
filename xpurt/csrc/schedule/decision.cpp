#include "schedule/decision.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "memory/replica/device_override.h"
#include "op/op_record.h"
#include "schedule/cached_choice.h"
#include "schedule/device_report.h"
#include "schedule/explain.h"
#include "schedule/exploration.h"
#include "schedule/partition.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

// How long a device is not chosen for a call whose kernel is being built for it.
constexpr double kBuildPauseUs = 5e3;

// Cached choices are reused without a lock, so nothing is booked for them. On several
// devices only choices for work that blocks the host, or is too short to matter, are
// cached. Long work that blocks the host is not: see Note [Overlap].
constexpr double kTooShortToBook = 50;

constexpr int kMaxDiscarded = 3;  // samples discarded in a row: Note [New pages]

// Timed samples on which a prediction is based that tells a slowdown of the device.
constexpr uint64_t kKnownSamples = 5;

// A shard tells of a slowdown only if it is at least this part of the call. The delays
// of a busy machine do not shrink with the shard: a small one, scaled to the whole
// call, would make the device look slow, get a smaller shard still, and look slower.
constexpr double kTellingPart = 0.25;

constexpr double kMinUs = 0.05;  // least prediction that a time is divided by

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

// The index of the candidate that the policy chooses. At home, the better one of the
// row's kernel and the native kernel is offered.
size_t choose_candidate(const Work& work, const Ordinal& devices,
                        const std::vector<DeviceCost>& costs,
                        const Exploration& exploration, OnlinePolicy& policy,
                        Decision* decision) {
  const Candidates& candidates = decision->candidates;
  const size_t count = devices.devices.size();
  const size_t home_candidate = exploration.choose_at_home(candidates, devices.home);
  // Home comes first: in a tie the policy takes the first candidate.
  const auto position_at = [&](size_t i) {
    return i == 0 ? devices.home : i == devices.home ? 0 : i;
  };
  const size_t best = position_at(policy.best_alone());
  Candidates offered;
  for (size_t i = 0; i < count; ++i) {
    const size_t position = position_at(i);
    Candidate& offer =
        offered.emplace_back(candidates[i == 0 ? home_candidate : position]);
    if (i == 0) offer.best_us = candidates.back().offered_us();
    offer.leave_us = results_us(work, devices, position, best, costs);
  }
  if (std::ranges::none_of(candidates, &Candidate::is_possible)) return home_candidate;
  const bool is_idle = std::ranges::all_of(
      offered, [&](const Candidate& each) { return each.free_us <= decision->now_us; });
  const size_t chosen = policy.choose(offered, decision->now_us, is_idle);
  decision->gained_us = policy.gained_us();
  return chosen == 0 ? home_candidate : position_at(chosen);
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
void add_long_op(const CallToDecide& call, size_t home, StreamClock& clock,
                 Decision* decision) {
  double least = Candidate::kNever;
  for (const Candidate& each : decision->candidates) {
    least = std::min(least, each.cost_us);
  }
  if (least < kLongUs || !std::isfinite(least)) return;
  const bool blocks = Overlap(decision->candidates, home, true).always_blocks();
  decision->path_us =
      clock.dependences.add_call(call.record, call.stack, least, blocks);
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
  double parallelism = 1;
  if (clock != nullptr) {
    add_long_op(call, devices.home, *clock, &decision);
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
  if (samples) {
    candidate = exploration.trial(decision.candidates, best);
    decision.explores = candidate != best;
    const CandidateStatistics& chosen = bucket.candidates[candidate];
    const bool is_due = is_sample_due(
        bucket, chosen.factor, decision.candidates[candidate].cost_us, chosen.stall_us);
    decision.timed = decision.explores || is_due ||
                     (several && slowdown_of(devices, candidate).wants_samples());
  }
  take(&decision, candidate, devices);
  if (decision.explores) {
    decision.gained_us += decision.candidates[best].finish_us() -
                          decision.candidates[candidate].finish_us();
  }
  if (clock != nullptr) {
    partition_call(call, work, stream, costs, found, *clock, 1 + reused, &decision);
    report(decision, devices);
    if (!decision.proportions.empty()) return decision;
    if (!decision.native)
      clock->book(decision.position, decision.finish_us, decision.now_us);
  }
  const bool is_short =
      decision.cost_us < (decision.native ? kLongUs : kTooShortToBook);
  const bool lasts = !decision.timed && !decision.provisional && (samples || !learns);
  if (cacheable && (!several || is_short) && lasts) {
    keep_choice(decision, mode, choice_word(version, holders, candidate), candidate,
                bucket);
  }
  return decision;
}

// What was learned may have been forgotten since the decision.
bool is_current(const Decision& decision) {
  return decision.bucket != nullptr && !decision.expected_us.empty() &&
         decision.costs_version == costs_version();
}

void record_time(const Decision& decision, Stream& stream, size_t candidate,
                 double own_us, PredictedAndMeasured times, double stall_us,
                 LearnedCost CandidateStatistics::* learned) {
  const Ordinal& devices = stream.ordinal();
  const FoundBucket found = decision.found();
  CandidateStatistics& statistics = found.bucket().candidates[candidate];
  LearnedCost& cost = statistics.*learned;
  const double factor = own_us / std::max(decision.expected_us[candidate], kMinUs);
  if (devices.devices.size() > 1) {
    const bool tells_of_device = times.measured_us >= kTellingPart * own_us;
    const bool changes =
        slowdown_of(devices, candidate)
            .record(factor / std::max(cost.estimate(factor), 1e-9), own_us,
                    cost.count() >= kKnownSamples && tells_of_device);
    if (changes) change_choices();
    if (tells_of_device && cost.count() > 0) {
      record_in_prior(decision, devices, found, candidate, own_us);
    }
  }
  record_sample(found, candidate, factor, stall_us, learned);
  if (cost.count() < 2 || devices.devices.size() == 1) return;  // the first warms up
  DecisionTimes& seen =
      decision_times(*devices.devices[position_of(candidate, devices)]);
  ++seen.calls;
  seen.predicted_us += times.predicted_us;
  seen.measured_us += times.measured_us;
}

bool discard_sample(const Decision& decision) {
  if (decision.bucket == nullptr) return false;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  int& discarded = decision.bucket->discarded;
  discarded = discarded < kMaxDiscarded ? discarded + 1 : 0;
  // The next call is a sample in its place: a call whose temporaries get new pages each
  // time would otherwise be learned from at a quarter of the rate.
  if (discarded > 0) make_sample_due(*decision.bucket);
  return discarded > 0;
}

void record_call_time(const Decision& decision, Stream& stream, double us,
                      double stall_us) {
  const size_t candidate =
      decision.native ? stream.ordinal().devices.size() : decision.position;
  us += decision.native ? learning_bias().native : learning_bias().kernel;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  if (!is_current(decision)) return;
  record_time(decision, stream, candidate, std::max(us - decision.moves_us, us / 10),
              {decision.cost_us + decision.moves_us, us}, stall_us,
              &CandidateStatistics::factor);
}

void record_results(const Decision& decision, const OpRecord& record, Stream& stream,
                    const torch::jit::Stack& stack) {
  if (decision.path_us <= 0) return;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  clock_of(stream).dependences.add_results(record, stack, decision.path_us);
}

void take_back_shard(const Decision& decision, Stream& stream, size_t position) {
  if (decision.proportions.empty() || decision.proportions[position] <= 0) return;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  clock_of(stream).backlog.take_back(position, decision.candidates[position].free_us,
                                     decision.booked_us[position]);
}

void take_back(const Decision& decision, Stream& stream) {
  // What is not on a clock: a cached choice, a plan, the native kernel.
  if (decision.candidates.empty() || decision.now_us <= 0 || decision.native) return;
  if (decision.proportions.empty()) {
    std::lock_guard<Mutex> lock(scheduler_mutex());
    clock_of(stream).backlog.take_back(decision.position,
                                       decision.candidates[decision.position].free_us,
                                       decision.finish_us);
  }
  for (size_t position = 0; position < decision.proportions.size(); ++position) {
    take_back_shard(decision, stream, position);
  }
}

bool record_building(const Decision& decision, Stream& stream,
                     const PhysicalDevice& device) {
  const Ordinal& devices = stream.ordinal();
  const size_t home = devices.home;
  const size_t position =
      std::ranges::find(devices.devices, &device) - devices.devices.begin();
  if (decision.bucket == nullptr || decision.candidates.empty())
    return position == home;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  decision.bucket->candidates[position].not_before_us = now_us() + kBuildPauseUs;
  decision.bucket->forget_choices();
  const Candidate& native = decision.candidates.back();
  return position == home ||
         (native.is_possible() && native.cost_us <= decision.candidates[home].cost_us);
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

void record_submission(Stream& stream, size_t position, const sycl::event& done) {
  if (stream.ordinal().devices.size() == 1 || is_capturing(stream)) return;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  StreamClock::Mark& mark = clock_of(stream).marks[position];
  if (!std::exchange(mark.wanted, false)) return;
  mark.done = done;
  mark.next_look_us = 0;
}

}  // namespace xpurt
