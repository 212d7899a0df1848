// When to try candidates whose times are unknown or old, and which calls to time. Uses
// no clock and no device.
#pragma once

#include "schedule/device_statistics.h"
#include "schedule/planning/candidate.h"

namespace xpurt {

// The measured costs of the candidates for a call: those at the positions of the
// devices, and the last one is the native kernel.
class Exploration {
 public:
  // `build_us`: expected time of the preparation of a kernel that has not run yet.
  // `calls`: how many calls this one stands for; 0 for a call that is not learned from.
  // `parallelism`: of the program's long ops. `may_divide`: whether several devices
  // could compute it together.
  Exploration(const FoundBucket& found, double build_us, uint32_t calls,
              double parallelism = 1, bool may_divide = false)
      : found_(found),
        build_us_(build_us),
        calls_(calls),
        parallelism_(parallelism),
        may_divide_(may_divide) {}

  // Adds to the regret of candidates that were never timed, and holds them back while
  // it is low: see Note [Exploration].
  void hold_back_unproven(Candidates* candidates, size_t home) const;

  // The better one of the native kernel and the home device's: see Note [Overlap]. Of
  // two that take about as long, the one in use stays.
  size_t choose_at_home(const Candidates& candidates, size_t home) const;

  // The candidate to run: one to try, if a trial is due; else `chosen`.
  size_t trial(const Candidates& candidates, size_t chosen) const;

 private:
  double build_us(size_t candidate) const;
  bool is_new(size_t candidate) const;
  bool is_trial_due(const Candidates& candidates, size_t candidate,
                    double now_us) const;
  void begin_trial(size_t candidate, size_t chosen) const;
  void compare(size_t candidate, size_t chosen) const;
  void compare_if_adopted(const Candidates& candidates, size_t chosen) const;

  const FoundBucket& found_;
  const double build_us_;
  const uint32_t calls_;
  const double parallelism_;
  const bool may_divide_;
};

// A candidate that is not in use.
struct UnusedCandidate {
  double cost_us = 0;   // predicted
  double moves_us = 0;  // of the copies for it
  double build_us = 0;
  bool is_new = false;      // it was never timed
  bool is_unsure = false;   // it was timed too few times
  double false_alarms = 0;  // of a stale time; 0: it is none
};

// The time that calls of `now_us` take before a first trial of the candidate.
double spent_before_trial(const UnusedCandidate& unused, double now_us,
                          bool may_divide);

// Whether a call that takes `us` is a timed sample, which delays the host by
// `stall_us`. If so, the count of calls starts again.
bool is_sample_due(StatisticsBucket& bucket, const LearnedCost& cost, double us,
                   double stall_us);

// Makes the next call a timed sample.
void make_sample_due(StatisticsBucket& bucket);

// Calls between two timed samples of a candidate that takes `us`.
uint32_t sampling_interval(uint64_t samples, double us, double stall_us);

// Records a timed sample: the candidate's time over the expected one, and the time for
// which the sample delayed the host.
void record_sample(
    const FoundBucket& found, size_t candidate, double factor, double stall_us,
    LearnedCost CandidateStatistics::* learned = &CandidateStatistics::factor);

}  // namespace xpurt
