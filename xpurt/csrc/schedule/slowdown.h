// How much slower a candidate is now than its learned costs. Uses no clock and no
// device.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace xpurt {

// Note [Slowdown]
// ~~~~~~~~~~~~~~~
// Another process may take a device, or its clock may fall. Then all its costs are
// wrong at once. Each op corrects its own cost by its own timed samples, of which there
// is one in some hundred calls: a program of many ops would go on using the slow device
// for thousands of calls. So the newest samples of all ops on a device are compared
// with their predictions. One sample that is clearly off may be an interruption: it
// makes the next calls on the device timed samples. So does work that ends much later
// than predicted: a marked submission, or all that was pending when the host waited. If
// all but one of the newest samples are late, the costs on the device are multiplied by
// the least of these. An interruption makes a time longer, never shorter, so two
// samples in time show that it has passed. A learned cost is divided by the slowdown,
// so that it stays right afterwards.
//
// The median of the samples was rejected. A driver with one thread for two devices
// starts one of two shards late in a third of the calls. Then the median is off now and
// again, in both directions, and each time the op learns its shards anew. The factor of
// a healthy device walked to 157 in twenty seconds, and the times of whole calls, which
// were no longer sampled, were multiplied by it.
//
// Only samples of calls whose cost is known count, and only long ones: an interruption
// of some microseconds is no slowdown of the device.
class Slowdown {
 public:
  static constexpr double kLeastUs = 50;
  static constexpr double kTolerance = 1.35;

  double factor() const { return factor_; }

  // Whether the next calls are to be timed.
  bool wants_samples() const { return wanted_ > 0; }

  // Makes the next calls timed samples: there is a sign that the device is slow. The
  // sign may be wrong, since work that is not predicted may have delayed the device. So
  // after each sign that was wrong, twice as many are ignored. Returns whether this one
  // counts.
  bool suspect() {
    if (wanted_ > 0) return false;
    if (ignored_ > 0) {
      --ignored_;
      return false;
    }
    wanted_ = kConfirming;
    quiet_ = std::min(2 * quiet_ + 1, kMaxQuiet);
    ignored_ = quiet_;
    return true;
  }

  // Records a timed sample. `ratio`: measured over predicted time, where the prediction
  // includes factor(). `is_known`: the prediction is based on enough samples. Returns
  // whether choices may have changed.
  bool record(double ratio, double measured_us, bool is_known) {
    const bool wanted = wanted_ > 0;
    if (wanted) --wanted_;
    if (!is_known || !std::isfinite(ratio) || ratio <= 0) return false;
    if (std::max(measured_us, measured_us / ratio) < kLeastUs) return false;
    newest_[next_] = ratio * factor_;
    next_ = (next_ + 1) % kKept;
    auto sorted = newest_;
    std::sort(sorted.begin(), sorted.end());
    const double second = sorted[1];
    if (is_off(second / factor_)) {
      factor_ = is_off(second) ? second : 1;
      wanted_ = quiet_ = ignored_ = 0;
      return true;
    }
    if (!is_off(ratio) || wanted) return false;
    wanted_ = kConfirming;
    return true;
  }

 private:
  static constexpr size_t kKept = 5;
  static constexpr int kConfirming = 4;
  static constexpr int kMaxQuiet = 1023;

  static bool is_off(double ratio) {
    return ratio > kTolerance || ratio < 1 / kTolerance;
  }

  std::array<double, kKept> newest_{1, 1, 1, 1, 1};
  size_t next_ = 0;
  int wanted_ = 0;   // timed samples that are still to come
  int quiet_ = 0;    // signs that are ignored after a wrong one
  int ignored_ = 0;  // those that are still to be ignored
  double factor_ = 1;
};

}  // namespace xpurt
