// The time of one kind of call on one device, learned from a few timed samples of the
// running program. Uses no clock and no device.
#pragma once

#include <array>
#include <cstdint>

namespace xpurt {

// Note [Learned costs]
// ~~~~~~~~~~~~~~~~~~~~
// A mean over all samples never forgets. If a page fault, another process or a build
// makes one sample 400 times as long, the device is not chosen for the rest of the
// program. So only the newest few times are kept, and those far from their median do
// not count. The first time is dropped, since that call warms up. With fewer than three
// times an outlier is recognized only by comparison with the expected time; an
// interruption makes a time longer, never shorter.
//
// A shard is timed beside shards of other devices, and a driver may have one thread for
// two of them: then a third of the shards start late, by the time of another one. So of
// the times of shards the mean of the shorter half counts. For whole calls that was
// rejected: it favors the candidate whose times scatter, though all of them count. A
// slowdown of the device is told by it in both cases.
//
// Before the second time, the first one is an upper bound of a whole call's. Not of a
// shard's: the first shards are small, and their times are scaled.
class LearnedCost {
 public:
  // Samples needed to converge, the dropped first one included.
  static constexpr int kNeeded = 10;

  void record(double time);

  // Number of recorded samples, the first one included.
  uint64_t count() const { return count_; }
  bool is_known() const { return count_ > 1; }
  bool has_converged() const { return count_ >= kNeeded; }

  // Counts the times of a comparison from here on: see Note [Comparisons].
  void begin_comparison() { newer_ = 0; }
  int newer() const { return newer_; }
  // The same with no times but these.
  LearnedCost newest() const;

  // What was learned elsewhere, as a first guess that a few samples replace.
  LearnedCost as_guess() const;

  // Predicts the next time. `expected`: the prediction without any sample.
  double estimate(double expected) const { return mean_of(expected, false); }

  // The same, if nothing delays it.
  double undisturbed(double expected) const { return mean_of(expected, true); }

  // The same, and not more than the first time if that is the only one.
  double bounded(double expected) const;

 private:
  static constexpr int kKept = kNeeded - 1;

  double mean_of(double expected, bool of_shorter_half) const;

  std::array<float, kKept> times_{};  // the newest is before next_
  int kept_ = 0;
  int next_ = 0;
  int newer_ = 0;  // of those that are kept
  float first_ = 0;
  uint64_t count_ = 0;
};

}  // namespace xpurt
