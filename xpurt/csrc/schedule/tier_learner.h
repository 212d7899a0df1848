// Learns, from times of the running program, which of two tiers a bucket of calls is
// better served by. Knows no clock and no device.
#pragma once

#include <array>
#include <cstdint>

#include "op/cost_table.h"

namespace xpurt {

// Note [Learning tiers]
// ~~~~~~~~~~~~~~~~~~~~~
// A submission returns before its kernel has run. So an honest time is that of a call
// on an idle stream, until the stream is idle again, and such a sample costs the
// overlap of host and device: samples come so rarely that what they stall is 1% of the
// calls' time. Of each tier the newest few times are kept, and their median is
// believed: an interruption by another process does not count, and an old time fades.
//
// The tier that is not in use is known by expectation, or by old times. It is tried by
// the rule of ski rental (Karlin, Manasse, Rudolph and Sleator, 1988): what a trial
// costs, the build of a kernel above all, is paid once as much could have been saved
// by the other tier, if expectation is right. A bucket begins with the native kernel,
// for which nothing is to be built, and so both tiers' times are known wherever the
// kernel is in use. A short program never builds a kernel that does
// not pay within it, and a long one loses at most as much again as it would have lost
// anyway. Where the other tier is expected to lose, but may win, its trial has to cost
// less than 1% of what was spent.
class TierLearner {
 public:
  // How one call is to be run and timed.
  struct TimedSample {
    bool kernel = false;
    bool counts = true;  // false: warms up, and its time means nothing
  };

  // `is_built`: the kernel is there already, or costs nothing to get.
  TierLearner(TierCosts expected_us, bool is_built);

  // The sample of the call that comes after `calls` without one. `build_us`: what
  // getting the kernel is expected to cost.
  TimedSample next(uint32_t calls, double build_us);

  // How long the sample took until it had finished, and how long the host waited on its
  // account when it would else have gone on.
  void record(TimedSample sample, double us, double stall_us);

  // The tier of calls that are not timed.
  bool kernel() const { return kernel_; }

  // How many of them come before the next sample.
  uint32_t interval() const { return interval_; }

  // Microseconds: what was measured, else what is expected after that.
  TierCosts estimate() const { return {estimate(false), estimate(true)}; }
  bool has_measured(bool kernel) const { return times_[kernel].count >= kEnough; }

 private:
  static constexpr int kKept = 5;    // times of each tier
  static constexpr int kEnough = 3;  // to be believed
  struct Times {
    std::array<double, kKept> us{};
    int count = 0;
    int next = 0;

    void add(double time_us);
    double median() const;
  };

  double estimate(bool kernel) const;
  bool is_time_for_trial(double build_us) const;
  void end_trial();

  const TierCosts expected_;
  std::array<Times, 2> times_;
  bool kernel_ = false;
  bool built_;
  int trial_ = 0;        // samples of the other tier that are still to come
  double spent_us_ = 0;  // in this bucket, since the last trial
  double backoff_ = 1;   // grows with each trial that was lost
  uint32_t interval_ = 0;
};

}  // namespace xpurt
