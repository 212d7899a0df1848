#include "schedule/planning/learned_cost.h"

#include <algorithm>
#include <cmath>

namespace xpurt {
namespace {

// A time that differs from the median by more than this factor is an outlier.
constexpr double kFar = 2;

}  // namespace

void LearnedCost::record(double time) {
  if (!std::isfinite(time) || time < 0) return;
  if (count_++ == 0) {
    first_ = static_cast<float>(time);
    return;
  }
  times_[next_] = static_cast<float>(time);
  next_ = (next_ + 1) % kKept;
  kept_ = std::min(kept_ + 1, kKept);
  newer_ = std::min(newer_ + 1, kKept);
}

LearnedCost LearnedCost::newest() const {
  LearnedCost made = *this;
  for (int i = 0; i < newer_; ++i) {
    made.times_[i] = times_[(next_ + kKept - newer_ + i) % kKept];
  }
  made.kept_ = newer_;
  made.next_ = newer_ % kKept;
  return made;
}

LearnedCost LearnedCost::as_guess() const {
  LearnedCost guess;
  if (!is_known()) return guess;
  // The first one is dropped.
  for (int i = 0; i < 2; ++i) guess.record(estimate(1));
  return guess;
}

double LearnedCost::mean_of(double expected, bool of_shorter_half) const {
  if (!is_known()) return expected;
  const int n = kept_;
  auto sorted = times_;
  std::sort(sorted.begin(), sorted.begin() + n);
  if (n == 1) {
    const double time = sorted[0];
    return time > expected ? std::sqrt(time * expected) : time;
  }
  if (n == 2) return sorted[0];
  const double median =
      n % 2 != 0 ? static_cast<double>(sorted[n / 2])
                 : (static_cast<double>(sorted[n / 2 - 1]) + sorted[n / 2]) / 2;
  const double longest = of_shorter_half ? median : median * kFar;
  double sum = 0;
  int near = 0;
  for (int i = 0; i < n; ++i) {
    if (sorted[i] * kFar < median || sorted[i] > longest) continue;
    sum += sorted[i];
    ++near;
  }
  return near > 0 ? sum / near : median;
}

double LearnedCost::bounded(double expected) const {
  return count_ == 1 ? std::min<double>(expected, first_) : estimate(expected);
}

}  // namespace xpurt
