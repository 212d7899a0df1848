// How much a copy on a device gains, as far as past uses tell. Uses no device and no
// clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

namespace xpurt {

// When a storage was used, in numbers of the program's ops.
class StorageUses {
 public:
  // Adds a use by the op with the number `now`; more than one by the same op are one.
  // Nothing is saved by a copy that is overwritten, so no gap ends with a mere write.
  void add(uint64_t now, bool reads, bool writes) {
    const auto gap = static_cast<double>(now - last_);
    if (reads && was_read_ && gap > 0) {
      gap_ = gap_ > 0 ? gap_ + kNewest * (gap - gap_) : gap;
    }
    last_ = now;
    was_read_ = reads;
    was_written_ = writes;
  }

  // The ops from one use to the next, as is expected: the mean of the newest gaps. It
  // is as much longer as the next use is overdue. After one use, what has passed since.
  double gap(uint64_t now) const {
    return std::max({gap_, static_cast<double>(now - last_), 1.0});
  }

  // The op that uses it next, as is expected.
  double next(uint64_t now) const {
    return static_cast<double>(last_) + (gap_ > 0 ? gap_ : 2 * gap(now));
  }

  // Whether the last use has changed it.
  bool was_written() const { return was_written_; }

 private:
  static constexpr double kNewest = 0.25;  // the weight of the newest gap

  uint64_t last_ = 0;
  double gap_ = 0;         // 0: not known
  bool was_read_ = false;  // by the last use
  bool was_written_ = false;
};

// Note [Values of copies]
// ~~~~~~~~~~~~~~~~~~~~~~~
// Of a model that is larger than a device's memory, some weights are *resident*: their
// copies stay. Others are *streamed*, which is a copy for each use, or *computed at
// home*. The memory is worth most if it holds the copies that gain most per byte and
// time (LNC-R: Scheuermann, Shim and Vingralek, 1996). For a program that goes round in
// a loop this is the greedy rule for the knapsack problem (Dantzig, 1957). With
//   saved   time that an op saves if the copy is there, over the time of copying it; at
//           most 1, since it could be streamed
//   gap     ops from one use to the next
// the value of a byte is saved / gap, as copying takes as long for each byte. A copy
// that is the only valid one is copied home before it goes. If the last use has written
// it, that happens each time, and saves as much again; the value of a weight is that of
// its reads. Learned times scatter, so values count as equal within a factor of kStep.
// Among equal ones the copy stays whose next use comes first (Belady, 1966): so of
// equal layers always the same stay, in whatever order they are used.
struct CopyValue {
  double value = 0;
  double next = 0;

  // `only`: it is the only valid copy.
  CopyValue(double saved, const StorageUses& uses, uint64_t now, bool only = false)
      : value((std::max(saved, kLeast) + (only && uses.was_written() ? 1 : 0)) /
              uses.gap(now)),
        next(uses.next(now)) {}

  // Whether it is worth less, beyond the scatter of learned times.
  bool is_clearly_below(const CopyValue& other) const {
    return value * kStep < other.value;
  }

  // The order in which copies go.
  bool operator<(const CopyValue& other) const {
    return std::tuple(level(), -next) < std::tuple(other.level(), -other.next);
  }

 private:
  static constexpr double kStep = 1.5;
  static constexpr double kLeast = 1e-3;

  double level() const { return std::floor(std::log(value) / std::log(kStep)); }
};

}  // namespace xpurt
