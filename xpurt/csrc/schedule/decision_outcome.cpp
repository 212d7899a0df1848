// What is recorded of a call after its decision.
#include <algorithm>
#include <cmath>
#include <utility>

#include "op/op_record.h"
#include "schedule/best_alone.h"
#include "schedule/cached_choice.h"
#include "schedule/decision.h"
#include "schedule/device_report.h"
#include "schedule/exploration.h"
#include "schedule/learning_mode.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

// How long a device is not chosen for a call whose kernel is being built for it.
constexpr double kBuildPauseUs = 5e3;

constexpr int kMaxDiscarded = 3;  // samples discarded in a row: Note [New pages]

// Timed samples on which a prediction is based that tells a slowdown of the device.
constexpr uint64_t kKnownSamples = 5;

// A shard tells of a slowdown only if it is at least this part of the call. The delays
// of a busy machine do not shrink with the shard: a small one, scaled to the whole
// call, would make the device look slow, get a smaller shard still, and look slower.
constexpr double kTellingPart = 0.25;

constexpr double kMinUs = 0.05;  // least prediction that a time is divided by

}  // namespace

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
            .record(factor / std::max(cost.undisturbed(factor), 1e-9), own_us,
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
  const size_t candidate = candidate_of(decision, stream.ordinal());
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
  record_return(stream.ordinal(), now_us());
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

void record_submission(Stream& stream, size_t position, const sycl::event& done) {
  if (stream.ordinal().devices.size() == 1 || is_capturing(stream)) return;
  std::lock_guard<Mutex> lock(scheduler_mutex());
  StreamClock::Mark& mark = clock_of(stream).marks[position];
  if (!std::exchange(mark.wanted, false)) return;
  mark.done = done;
  mark.next_look_us = 0;
}

}  // namespace xpurt
