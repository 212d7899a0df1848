// Where a program is in its outermost loop, by the kinds of its last ops. Uses no
// clock, no queue and no tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace xpurt {

// A place is known by the last eight ops, as a number of eight bits. A program comes
// regularly by a place that it has once per round of the loop: the ops between two
// visits are always about as many. A model of equal layers comes by most places once
// per layer, forward and backward, so their visits are uneven. So are those of a place
// that only some rounds have, such as one with an op that is about as long as the
// shortest that is counted.
class LoopPlace {
 public:
  // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4).
  static uint8_t eight_bits_of(uint64_t number) {
    return static_cast<uint8_t>(number * 0x9E3779B97F4A7C15u >> 56);
  }

  // Adds an op. `kind`: ops of a kind have the same number. `now`: microseconds.
  void add(uint64_t kind, double now) {
    last_kinds_ = last_kinds_ << 8 | eight_bits_of(kind);
    ++ops_;
    Visits& visits = places_[here()];
    std::shift_right(visits.begin(), visits.end(), 1);
    visits.front() = {ops_, now};
  }

  uint8_t here() const { return eight_bits_of(last_kinds_); }

  struct Place {
    uint8_t number;
    double interval_us;  // mean time between two visits
  };

  // The place with the longest interval among those that are visited regularly; none
  // if there is no such place.
  std::optional<Place> once_per_round() const {
    std::optional<Place> found;
    uint64_t longest = 0;
    for (size_t place = 0; place < kPlaces; ++place) {
      const Visits& visits = places_[place];
      const uint64_t interval = regular_interval(visits);
      if (interval <= longest) continue;
      longest = interval;
      found = {static_cast<uint8_t>(place),
               (visits.front().now - visits.back().now) / (kVisits - 1)};
    }
    return found;
  }

 private:
  static constexpr size_t kPlaces = 256;
  static constexpr size_t kVisits = 5;
  // Of an interval, in proportion.
  static constexpr double kUneven = 0.1;

  struct Visit {
    uint64_t op = 0;  // counted from 1; 0: there was none
    double now = 0;
  };
  using Visits = std::array<Visit, kVisits>;  // the last one first

  // The ops between two visits; 0 if they are uneven, or the place is not met any more.
  uint64_t regular_interval(const Visits& visits) const {
    if (visits.back().op == 0) return 0;
    const uint64_t mean = (visits.front().op - visits.back().op) / (kVisits - 1);
    const auto slack = static_cast<uint64_t>(kUneven * static_cast<double>(mean)) + 1;
    if (ops_ - visits.front().op > mean + slack) return 0;
    for (size_t i = 1; i < kVisits; ++i) {
      const uint64_t interval = visits[i - 1].op - visits[i].op;
      if (interval + slack < mean || interval > mean + slack) return 0;
    }
    return mean;
  }

  uint64_t last_kinds_ = 0;  // eight bits for each
  uint64_t ops_ = 0;
  std::array<Visits, kPlaces> places_{};
};

}  // namespace xpurt
