#include "schedule/exploration.h"

#include <algorithm>

#include "program/program_build.h"

namespace xpurt {
namespace {

// Which calls are timed samples. The first few in a row are, since every decision
// depends on them. Later samples are rare, since a timed call waits for its device.
constexpr uint64_t kFirstSamples = 3;
constexpr int kTrials = 3;
constexpr uint32_t kIntervalLearning = 3;  // calls between two timed samples
constexpr uint32_t kIntervalConverged = 127;

// A candidate that is not in use is tried once its trial costs less than this fraction
// of the time spent. If it is expected to take more than kUnlikelyRatio times as long,
// the trial counts kUnlikelyFactor times as much. It is never ruled out: the cause of
// its slow times may have passed.
constexpr double kTrialFraction = 0.01;
constexpr double kUnlikelyRatio = 4;
constexpr double kUnlikelyFactor = 10;
// The fraction for a candidate with too few timed samples: all of them may have been
// disturbed.
constexpr double kUnsureFraction = 0.1;

// At least this fraction of the calls' time counts as regret: the expectation may be
// wrong, and a kernel leaves the host free to submit work to other devices.
constexpr double kMinRegret = 0.2;

}  // namespace

// Note [Exploration]
// ~~~~~~~~~~~~~~~~~~
// A candidate that was never timed may need a build, its first calls are warm-up, and
// its expected time may be wrong. So it is held back until its regret equals the
// expected price of its trial. That is the rule of ski rental, as for tiers
// (Note [Learning tiers]). Copies do not count in the regret: if all ops move to
// another device, their data are there. An op that takes longer than a build is run
// there at once. PyTorch's CPU kernel is never new.
void hold_back_unproven(const FoundBucket& found, uint32_t calls, Decision* decision) {
  const size_t native = decision->candidates.size() - 1;
  if (!decision->candidates[native].is_possible()) return;
  StatisticsBucket& bucket = found.bucket();
  const auto is_new = [&](size_t candidate) {
    return candidate != native && bucket.candidates[candidate].factor.count() == 0 &&
           !is_measured(found, candidate);
  };
  double finish = Candidate::kNever, cost = Candidate::kNever;
  for (size_t candidate = 0; candidate <= native; ++candidate) {
    if (is_new(candidate)) continue;
    finish = std::min(finish, decision->candidates[candidate].finish_us());
    cost = std::min(cost, decision->candidates[candidate].cost_us);
  }
  for (size_t candidate = 0; candidate < native; ++candidate) {
    Candidate& each = decision->candidates[candidate];
    if (!each.can_run() || !is_new(candidate)) continue;
    CandidateStatistics& known = bucket.candidates[candidate];
    const double gain = std::max(finish - each.finish_us(), cost - each.cost_us);
    known.regret_us += std::max(gain, kMinRegret * cost) * calls;
    each.held_back = known.regret_us < expected_build_us() + kTrials * each.cost_us;
  }
}

size_t trial(StatisticsBucket& bucket, const Decision& decision, size_t chosen) {
  const double now_us = decision.candidates[chosen].cost_us;
  for (size_t candidate = 0; candidate < decision.candidates.size(); ++candidate) {
    const Candidate& each = decision.candidates[candidate];
    if (candidate == chosen || !each.can_run()) continue;
    CandidateStatistics& other = bucket.candidates[candidate];
    if (other.trials > 0) {
      --other.trials;
      return candidate;
    }
    double price = kTrials * (each.cost_us + each.moves_us);
    if (each.cost_us > kUnlikelyRatio * now_us) price *= kUnlikelyFactor;
    if (other.factor.count() == 0) price += expected_build_us();
    const bool unsure = other.factor.is_known() && !other.factor.has_converged();
    const double fraction = unsure ? kUnsureFraction : kTrialFraction;
    if (bucket.spent_us * fraction < price * other.backoff) continue;
    bucket.spent_us = 0;
    other.backoff *= 2;
    other.trials = kTrials - 1;
    return candidate;
  }
  return chosen;
}

uint32_t sampling_interval(const LearnedCost& factor) {
  if (factor.count() < kFirstSamples) return 0;
  return factor.has_converged() ? kIntervalConverged : kIntervalLearning;
}

bool is_sample_due(StatisticsBucket& bucket, const LearnedCost& cost) {
  if (bucket.calls < sampling_interval(cost)) return false;
  bucket.calls = 0;
  return true;
}

}  // namespace xpurt
