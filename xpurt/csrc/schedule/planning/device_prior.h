// What an op costs on a device where it was never timed, by the ops that were. Uses no
// clock and no device.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace xpurt {

// Note [Device prior]
// ~~~~~~~~~~~~~~~~~~~
// A device may be far slower than its calibrated costs: another process uses it, or a
// driver adds a delay to each launch. Every pair of op and size then paid for some slow
// calls before it was known: a training step of thirty ops ran ten seconds on a device
// twenty times slower before it left it. So the newest samples of other ops correct the
// cost of an op that was never timed there, like an empirical prior (Robbins, 1956).
//
// The prior is careful, since ops differ: one op's cost may be wrong for reasons of its
// own. It speaks only if each of the newest three ops took at least twice as long as
// was expected, and it has the least of their ratios and the least of their delays. A
// multiple alone was rejected: a delay per launch is a small multiple of a long op and
// a large one of a short op. What is slow at home, too, is not counted.
class DevicePrior {
 public:
  static constexpr double kSlow = 2;

  // Records a timed sample of an op. `op`: a name for it. `expected_us`: without what
  // was learned on the device.
  void record(const void* op, double measured_us, double expected_us) {
    if (!std::isfinite(measured_us) || expected_us <= 0) return;
    const Sample sample{op, measured_us / expected_us, measured_us - expected_us};
    const auto known = std::ranges::find(newest_, op, &Sample::op);
    if (known != newest_.end()) {
      *known = sample;
      return;
    }
    newest_[next_] = sample;
    next_ = (next_ + 1) % newest_.size();
  }

  // The predicted time of an op that was never timed on the device.
  double corrected_us(double expected_us) const {
    const Sample& least = *std::ranges::min_element(newest_, {}, &Sample::ratio);
    if (least.ratio < kSlow) return expected_us;
    const Sample& soonest = *std::ranges::min_element(newest_, {}, &Sample::delay_us);
    return std::max(expected_us * least.ratio, expected_us + soonest.delay_us);
  }

 private:
  struct Sample {
    const void* op = nullptr;
    double ratio = 1;  // measured over expected time
    double delay_us = 0;
  };
  std::array<Sample, 3> newest_;
  size_t next_ = 0;
};

}  // namespace xpurt
