// Learns from times of the running program which of two tiers is faster for a bucket of
// calls. Uses no clock and no device.
#pragma once

#include <array>
#include <cstdint>

#include "op/cost_table.h"

namespace xpurt {

// Note [Learning tiers]
// ~~~~~~~~~~~~~~~~~~~~~
// A submission returns before its kernel has run. So a valid time is that of a call on
// an idle stream, until the stream is idle again. Such a sample costs the overlap of
// host and device. Samples are so rare that their stalls are 1% of the calls' time. The
// newest few times of each tier are kept, and their median is the estimate: an
// interruption by another process does not count, and an old time fades.
//
// The time of the tier that is not in use is only expected, or old. That tier is tried
// by the rule of ski rental (Karlin, Manasse, Rudolph and Sleator, 1988). A trial has a
// price, above all the build of a kernel. It is paid once the other tier would have
// saved as much, if the expectation is right. A bucket begins with the native kernel,
// which needs no build. So the times of both tiers are known wherever the kernel is in
// use. A short program never builds a kernel that does not pay within it, and a long
// one loses at most as much again as it would have lost anyway. If the other tier is
// expected to lose, but may win, its trial has to cost less than 1% of the time spent.
class TierLearner {
 public:
  // How one call is to be run and timed.
  struct TimedSample {
    bool kernel = false;
    bool counts = true;  // false: the call warms up, and its time is ignored
  };

  // `is_built`: the kernel is built already, or its build costs nothing.
  TierLearner(TierCosts expected_us, bool is_built);

  // How to run the next timed sample. `calls`: calls since the last one. `build_us`:
  // the expected time of the kernel's build.
  TimedSample next(uint32_t calls, double build_us);

  // Records the time of a sample until it had finished, and the time for which the host
  // waited only because of the sample. Both in microseconds.
  void record(TimedSample sample, double us, double stall_us);

  // The tier of calls that are not timed.
  bool kernel() const { return kernel_; }

  // Number of calls before the next timed sample.
  uint32_t interval() const { return interval_; }

  // Microseconds: the median of the measured times. Without any, the expected time,
  // scaled by what was measured of the other tier.
  TierCosts estimate() const { return {estimate(false), estimate(true)}; }
  bool has_measured(bool kernel) const { return times_[kernel].count >= kEnough; }

 private:
  static constexpr int kKept = 5;    // times of each tier
  static constexpr int kEnough = 3;  // times needed before they are trusted
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
  double backoff_ = 1;   // doubles with each lost trial
  uint32_t interval_ = 0;
};

}  // namespace xpurt
