#include "new_ways.h"

#include <algorithm>

#include "program_build.h"

namespace xpurt {
namespace {

// How calls are chosen to be timed. The first few in a row, since everything depends on
// them; then now and then: a timed call waits for its device, which others do not.
constexpr uint64_t kInARow = 3;
constexpr int kTrials = 3;
constexpr uint32_t kWhileLearning = 3;  // calls in between
constexpr uint32_t kOnceSettled = 127;

// A way that is not in use is tried once its trial costs less than this share of what
// was spent; later, if it is expected to take more than so many times as long. Never is
// too late: what made it look so slow may have passed.
constexpr double kTrialShare = 0.01;
constexpr double kTrialHope = 4;
constexpr double kLittleHope = 10;
// The share of a way that was timed too seldom to be sure: all of so few times may have
// been disturbed.
constexpr double kUnsureShare = 0.1;

// At least this share of what calls take counts as missed: what is expected may be
// wrong, and a kernel leaves the host free to give work to other devices.
constexpr double kCuriosity = 0.2;

}  // namespace

// Note [New ways]
// ~~~~~~~~~~~~~~~
// A way that was never timed may have to be built, its first calls warm things up, and
// what is expected of it may be wrong. So it is held back until as much was missed by
// that as it will cost, if expectation is right: the rule of ski rental, as for tiers
// (Note [Learning tiers]). Copies do not count: where all ops go to another device, the
// data are there. An op that takes longer than a build goes at once. PyTorch's CPU
// kernel is never new.
void hold_new_ways_back(const FoundBucket& found, uint32_t calls, Placing* placing) {
  const size_t native = placing->candidates.size() - 1;
  if (!placing->candidates[native].is_possible()) return;
  PlaceBucket& bucket = found.bucket();
  const auto is_new = [&](size_t way) {
    return way != native && bucket.ways[way].factor.count() == 0 &&
           !is_proven(found, way);
  };
  double finish = Candidate::kNever, cost = Candidate::kNever;
  for (size_t way = 0; way <= native; ++way) {
    if (is_new(way)) continue;
    finish = std::min(finish, placing->candidates[way].finish_us());
    cost = std::min(cost, placing->candidates[way].cost_us);
  }
  for (size_t way = 0; way < native; ++way) {
    Candidate& each = placing->candidates[way];
    if (!each.can_run() || !is_new(way)) continue;
    PlaceWay& known = bucket.ways[way];
    const double gain = std::max(finish - each.finish_us(), cost - each.cost_us);
    known.missed_us += std::max(gain, kCuriosity * cost) * calls;
    each.held_back = known.missed_us < expected_build_us() + kTrials * each.cost_us;
  }
}

size_t trial(PlaceBucket& bucket, const Placing& placing, size_t chosen) {
  const double now_us = placing.candidates[chosen].cost_us;
  for (size_t way = 0; way < placing.candidates.size(); ++way) {
    const Candidate& each = placing.candidates[way];
    if (way == chosen || !each.can_run()) continue;
    PlaceWay& other = bucket.ways[way];
    if (other.trials > 0) {
      --other.trials;
      return way;
    }
    double price = kTrials * (each.cost_us + each.moves_us);
    if (each.cost_us > kTrialHope * now_us) price *= kLittleHope;
    if (other.factor.count() == 0) price += expected_build_us();
    const bool unsure = other.factor.is_known() && !other.factor.is_settled();
    const double share = unsure ? kUnsureShare : kTrialShare;
    if (bucket.spent_us * share < price * other.patience) continue;
    bucket.spent_us = 0;
    other.patience *= 2;
    other.trials = kTrials - 1;
    return way;
  }
  return chosen;
}

uint32_t calls_between(const LearnedCost& factor) {
  if (factor.count() < kInARow) return 0;
  return factor.is_settled() ? kOnceSettled : kWhileLearning;
}

bool is_time_to_learn(PlaceBucket& bucket, const LearnedCost& cost) {
  if (bucket.calls < calls_between(cost)) return false;
  bucket.calls = 0;
  return true;
}

}  // namespace xpurt
