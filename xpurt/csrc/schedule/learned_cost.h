// What one kind of call takes on one device, learned from a few times of the running
// program. Knows no clock and no device.
#pragma once

#include <array>
#include <cstdint>

namespace xpurt {

// Note [Learned costs]
// ~~~~~~~~~~~~~~~~~~~~
// A mean over all that was ever seen never forgets: one time that a page fault, another
// process or a build made 400 times as long keeps a device out of the choice for the
// rest of the program. So the newest few times are kept, and those that lie far from
// their median do not count. The first time is dropped: it warms something up. Fewer
// than three times tell an outlier from the truth only with the help of what was
// expected; an interruption makes a time longer, never shorter.
class LearnedCost {
 public:
  // Times that it takes to be sure, the one that is dropped included.
  static constexpr int kNeeded = 10;

  void record(double time);

  // How many times were noted, the first one included.
  uint64_t count() const { return count_; }
  bool is_known() const { return count_ > 1; }
  bool has_converged() const { return count_ >= kNeeded; }

  // What the next time will be. `expected`: without any.
  double estimate(double expected) const;

 private:
  static constexpr int kKept = kNeeded - 1;

  std::array<float, kKept> times_{};
  uint64_t count_ = 0;
};

}  // namespace xpurt
