// Whether what is measured again and again has risen. Uses no clock.
#pragma once

#include <algorithm>
#include <cmath>

namespace xpurt {

// The cumulative sum of Page (1954), of logarithms: a small rise is found after many
// samples, and a large one after a few. A single sample is never enough. The level
// follows what falls, and not what rises.
class Cusum {
 public:
  // Adds a sample. Returns whether the samples have risen above the level.
  bool add(double sample) {
    if (sample < level_) level_ += (sample - level_) * kFollows;
    const double rise = std::log(sample / level_) - kIgnored;
    sum_ = std::max(0.0, sum_ + std::min(rise, kMostOfOne));
    return sum_ > limit_;
  }

  // Forgets the samples. `was_wrong`: the rise that was found did not count, so the
  // next one has to be clearer.
  void restart(double level, bool was_wrong) {
    level_ = level;
    sum_ = 0;
    limit_ = was_wrong ? std::min(2 * limit_, kMostLimit) : kLimit;
  }

 private:
  // Logarithms: a rise of 5% is ignored, and one of 30% is found after three samples.
  static constexpr double kIgnored = 0.05;
  static constexpr double kLimit = 0.3, kMostLimit = 2.4;
  static constexpr double kMostOfOne = 0.15;
  static constexpr double kFollows = 0.25;

  double level_ = 0, sum_ = 0;
  double limit_ = kLimit;
};

}  // namespace xpurt
