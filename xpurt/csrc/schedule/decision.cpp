#include "schedule/decision.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "memory/replica/device_override.h"
#include "op/op_record.h"
#include "schedule/explain.h"
#include "schedule/exploration.h"
#include "schedule/partition.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

// If two candidates at home take about as long and the op is long, the one that does
// not block the host is better.
constexpr double kLongUs = 200;
constexpr double kAbout = 1.02;

// How long a device is not chosen for a call whose kernel is being built for it.
constexpr double kBuildPauseUs = 5e3;

// Cached decisions are reused without a lock, so nothing is booked for them. Only
// decisions for work that blocks the host, or is too short to matter, are cached.
constexpr double kTooShortToBook = 50;
constexpr uint32_t kForLong = 1 << 20;  // calls; used where nothing is learned

constexpr int kMaxDiscarded = 3;  // samples discarded in a row: Note [New pages]

constexpr double kNativeCallUs = 1;  // order of magnitude of a call on one element
constexpr double kMinUs = 0.05;      // least prediction that a time is divided by

std::array<DecisionTimes, kCountedDevices>& times() {
  static auto* const leaked = new std::array<DecisionTimes, kCountedDevices>;
  return *leaked;
}
DecisionTimes& times_of(const PhysicalDevice& device) {
  return times()[std::min(device.id, kCountedDevices - 1)];
}

// A cached decision in one word: its conditions, and the candidate.
//   version of the scheduler (40 bits) | devices with all operands (16) | candidate + 1
//   (8)
constexpr int kMaskBits = 16, kCandidateBits = 8;
uint64_t cache_word(uint64_t version, uint64_t mask, size_t candidate) {
  return version << (kMaskBits + kCandidateBits) | mask << kCandidateBits |
         (candidate + 1);
}

// Fills in the expected times of the candidates, without learned factors: by the
// curves, else by the roofline.
void expect(const CallToDecide& call, const Work& work, const Ordinal& devices,
            c10::DeviceIndex index, const std::vector<DeviceCost>& costs,
            Decision* decision) {
  const char letter = letter_at(type_layout_of(call.signature));
  const bool curves = uses_cost_curves(index);
  const auto curve = [&](const PhysicalDevice& device) -> std::optional<TierCosts> {
    if (!curves) return std::nullopt;
    return expected_costs(device.id, call.row.prior.cost_class, letter,
                          call.signature.layout(), static_cast<double>(call.elements));
  };
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    const auto found = curve(*devices.devices[position]);
    decision->expected_us.push_back(
        found.has_value() ? found->kernel : roofline_us(work, costs, position));
  }
  const auto found = curve(devices.home_device());
  DeviceCost host = costs[devices.home];
  if (curves) host.launch_us = kNativeCallUs;
  decision->expected_us.push_back(found.has_value() ? found->native
                                                    : roofline_us(work, host));
}

// Fills in the candidates, with their predicted ends.
void compare(const CallToDecide& call, const Work& work, Stream& stream,
             const std::vector<DeviceCost>& costs, const FoundBucket& found,
             const StreamClock* clock, double now, Decision* decision) {
  const Ordinal& devices = stream.ordinal();
  const size_t count = devices.devices.size();
  uint64_t positions = positions_for(work, devices);
  if (must_run_at_home(work)) positions = uint64_t{1} << devices.home;
  const bool planned = clock == nullptr;
  for (size_t candidate = 0; candidate <= count; ++candidate) {
    const size_t position = candidate == count ? devices.home : candidate;
    Candidate made = make_candidate(work, devices, position, costs, clock, now);
    const bool may = (positions >> position & 1) != 0 &&
                     (candidate != count || call.native) &&
                     (candidate != devices.home || call.home_kernel || !call.native);
    if (may && (planned || found.bucket().candidates[candidate].not_before_us <= now)) {
      const double factor = planned ? 1 : learned_factor(found, candidate);
      made.cost_us = decision->expected_us[candidate] * factor;
    }
    decision->candidates.push_back(made);
  }
}

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
                        const std::vector<DeviceCost>& costs, double now,
                        OnlinePolicy& policy, const Decision& decision) {
  const Candidates& candidates = decision.candidates;
  const size_t count = devices.devices.size();
  const double native_us = candidates[count].offered_us();
  const double kernel_us = candidates[devices.home].offered_us();
  // While a kernel runs, the host is free to submit work to other devices.
  const bool is_known = decision.bucket->candidates[devices.home].factor.is_known();
  const bool by_kernel = kernel_us < native_us || (is_known && kernel_us > kLongUs &&
                                                   kernel_us <= kAbout * native_us);
  const size_t home_candidate = by_kernel ? devices.home : count;
  // Home comes first: in a tie the policy takes the first candidate.
  const auto position_of = [&](size_t i) {
    return i == 0 ? devices.home : i == devices.home ? 0 : i;
  };
  const size_t best = position_of(policy.best_alone());
  Candidates offered;
  for (size_t i = 0; i < count; ++i) {
    const size_t position = position_of(i);
    Candidate& offer =
        offered.emplace_back(candidates[i == 0 ? home_candidate : position]);
    offer.leave_us = results_us(work, devices, position, best, costs);
  }
  if (std::ranges::none_of(candidates, &Candidate::is_possible)) return home_candidate;
  const size_t chosen = policy.choose(offered, now);
  return chosen == 0 ? home_candidate : position_of(chosen);
}

void take(Decision* decision, size_t candidate, const Ordinal& devices) {
  const Candidate& taken = decision->candidates[candidate];
  decision->native = candidate == devices.devices.size();
  decision->position = decision->native ? devices.home : candidate;
  decision->cost_us = taken.cost_us;
  decision->moves_us = taken.moves_us;
  decision->finish_us = taken.finish_us();
}

void book_partition(const Decision& decision, const Ordinal& devices) {
  for (size_t position = 0; position < decision.proportions.size(); ++position) {
    if (decision.proportions[position] <= 0) continue;
    times_of(*devices.devices[position]).busy_us +=
        decision.finish_us - decision.candidates[position].free_us;
  }
}

}  // namespace

Decision decide(const CallToDecide& call, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  const c10::DeviceIndex index = stream.id().device_index();
  const size_t count = devices.devices.size();
  const Work work = work_of(call.cost, devices);
  const bool planned = is_deterministic();
  const bool cacheable = !planned && !has_preference() && !is_home_only() &&
                         !is_explaining() && count <= kMaskBits && stream.idle();
  Decision decision;
  uint64_t mask = 0;
  const uint64_t version = scheduler_version() & ((uint64_t{1} << 40) - 1);
  if (cacheable) {
    mask = work.residency.holders();
    StatisticsBucket* bucket =
        find_bucket(call.record, index, call.signature, call.elements);
    if (bucket != nullptr) {
      const uint64_t word = bucket->cached.load(std::memory_order_relaxed);
      const uint64_t candidate = (word & ((1 << kCandidateBits) - 1)) - 1;
      const uint32_t left = bucket->calls_left.load(std::memory_order_relaxed);
      if (left > 0 && word == cache_word(version, mask, candidate)) {
        bucket->calls_left.store(left - 1, std::memory_order_relaxed);
        decision.native = candidate == count;
        decision.position = decision.native ? devices.home : candidate;
        return decision;
      }
    }
  }
  const auto costs = device_costs(index);
  std::lock_guard<Mutex> lock(scheduler_mutex());
  const FoundBucket found =
      find_or_make_bucket(call.record, index, call.signature, call.elements);
  StatisticsBucket& bucket = found.bucket();
  decision.bucket = &bucket;
  StreamClock* clock = planned ? nullptr : &clock_of(stream);
  const double now = planned ? 0 : now_us();
  decision.now_us = now;
  if (clock != nullptr) clock->catch_up(stream, now);
  if (costs.empty()) {
    decision.position = devices.home;
    decision.native = call.native && !call.home_kernel;
    return decision;
  }
  expect(call, work, devices, index, costs, &decision);
  compare(call, work, stream, costs, found, clock, now, &decision);
  // Calls since the last full decision: those that reused the cached one, and this one.
  const uint32_t left = std::min(bucket.interval, bucket.calls_left.load());
  const uint32_t calls = 1 + bucket.interval - left;
  bucket.interval = left;
  if (!planned && call.learns) hold_back_unproven(found, calls, &decision);
  const size_t best =
      planned ? earliest(decision.candidates, call.native ? count : devices.home)
              : choose_candidate(work, devices, costs, now, clock->policy, decision);
  size_t candidate = best;
  if (!planned && call.learns) {
    bucket.spent_us += decision.candidates[candidate].cost_us * calls;
    bucket.calls += calls;
    candidate = trial(bucket, decision, candidate);
    decision.explores = candidate != best;
    decision.timed =
        decision.explores || is_sample_due(bucket, bucket.candidates[candidate].factor);
  }
  take(&decision, candidate, devices);
  if (clock == nullptr) return decision;
  partition_call(call, work, stream, costs, found, *clock, calls, &decision);
  if (!decision.proportions.empty()) {
    book_partition(decision, devices);
    return decision;
  }
  if (!decision.native) clock->book(decision.position, decision.finish_us);
  times_of(*devices.devices[decision.position]).busy_us += decision.cost_us;
  const bool is_short = decision.native || decision.cost_us < kTooShortToBook;
  if (cacheable && is_short && !decision.timed) {
    bucket.interval =
        call.learns ? sampling_interval(bucket.candidates[candidate].factor) : kForLong;
    bucket.calls_left.store(bucket.interval, std::memory_order_relaxed);
    bucket.cached.store(cache_word(version, mask, candidate),
                        std::memory_order_relaxed);
  }
  return decision;
}

bool is_decided_native(const OpRecord& record, c10::DeviceIndex index,
                       const CallSignature& signature) {
  StatisticsBucket* bucket =
      find_bucket(record, index, signature, signature.elements());
  if (bucket == nullptr || has_preference()) return false;
  const uint64_t version = scheduler_version() & ((uint64_t{1} << 40) - 1);
  const size_t devices = ordinal(index).devices.size();
  const uint64_t word = bucket->cached.load(std::memory_order_relaxed);
  if ((word & ((1 << kCandidateBits) - 1)) != devices + 1) return false;
  if (word >> (kMaskBits + kCandidateBits) != version) return false;
  const uint32_t left = bucket->calls_left.load(std::memory_order_relaxed);
  if (left == 0) return false;
  bucket->calls_left.store(left - 1, std::memory_order_relaxed);
  return true;
}

void record_time(const Decision& decision, Stream& stream, size_t candidate,
                 double own_us, PredictedAndMeasured times,
                 LearnedCost CandidateStatistics::* learned) {
  const Ordinal& devices = stream.ordinal();
  LearnedCost& factor = decision.bucket->candidates[candidate].*learned;
  factor.record(own_us / std::max(decision.expected_us[candidate], kMinUs));
  decision.bucket->cached.store(0, std::memory_order_relaxed);
  if (factor.count() < 2) return;  // the first call warms up
  const size_t position =
      candidate == devices.devices.size() ? devices.home : candidate;
  DecisionTimes& seen = times_of(*devices.devices[position]);
  ++seen.calls;
  seen.predicted_us += times.predicted_us;
  seen.measured_us += times.measured_us;
}

bool discard_sample(const Decision& decision) {
  if (decision.bucket == nullptr) return false;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  int& discarded = decision.bucket->discarded;
  discarded = discarded < kMaxDiscarded ? discarded + 1 : 0;
  return discarded > 0;
}

void record_call_time(const Decision& decision, Stream& stream, double us) {
  if (decision.bucket == nullptr || decision.expected_us.empty()) return;
  const size_t candidate =
      decision.native ? stream.ordinal().devices.size() : decision.position;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  record_time(decision, stream, candidate, std::max(us - decision.moves_us, us / 10),
              {decision.cost_us + decision.moves_us, us}, &CandidateStatistics::factor);
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
  decision.bucket->cached.store(0, std::memory_order_relaxed);
  // The booked work was not submitted.
  clock_of(stream).backlog.book(position, decision.candidates[position].free_us);
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

DecisionTimes decision_times(int physical_device_id) {
  std::lock_guard<Mutex> lock(scheduler_mutex());
  return times()[std::clamp(physical_device_id, 0, kCountedDevices - 1)];
}

void reset_decision_times() {
  std::lock_guard<Mutex> lock(scheduler_mutex());
  times().fill({});
}

}  // namespace xpurt
