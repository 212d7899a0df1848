// When to divide an op again though its shards were slow.
#pragma once

#include <algorithm>
#include <vector>

#include "schedule/planning/division.h"

namespace xpurt {

// Note [Divisions that lost]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~
// The times of shards are learned only while the op is divided. If the first ones were
// disturbed, by another process or by new pages, the op was never divided again, and
// nothing could correct them: a convolution stayed on one device for the rest of the
// program. So a division that pays by the times of whole calls is tried again, under
// the rule of single candidates that lost (Note [Exploration]): once the trial is
// expected to cost less than kFraction of the time spent since the last one. Each trial
// doubles the wait, until the times of shards have converged in favor of the division.
//
// A trial forgets the times of shards, so it lasts until new ones are known. Trials of
// three calls that added their times to the old ones were rejected: the median of nine
// times changes after five of them, the first calls of a trial have new pages, and so a
// softmax that two devices compute in 0.6 of the time was not divided for 1,300 calls.
class LostDivision {
 public:
  // Adds `calls` calls of `us` that were not divided. `divided_us`: the time of such a
  // call in the proportions of the trial. Returns whether to begin a trial.
  bool is_due(double us, double divided_us, double calls) {
    spent_us_ += us * calls;
    const double loss_us = std::max(divided_us - us, kLeastLoss * us);
    if (spent_us_ * kFraction < kTrialCalls * loss_us * backoff_) return false;
    spent_us_ = 0;
    backoff_ *= 2;
    return true;
  }

  // Records that the division pays.
  void pay_off() { *this = {}; }

 private:
  static constexpr int kTrialCalls = 4;       // until times are known
  static constexpr double kFraction = 0.05;   // of the time spent
  static constexpr double kLeastLoss = 0.05;  // of a call, even if no loss is expected

  double spent_us_ = 0;
  double backoff_ = 1;
};

// The division to try though the times of shards speak against it; empty: none is due.
// `us`: the time of the call without it. `calls`: how many such calls this one stands
// for.
Division divide_again(const std::vector<DevicePart>& by_shards,
                      const std::vector<DevicePart>& by_whole_calls, size_t devices,
                      double us, double calls, LostDivision* lost);

}  // namespace xpurt
