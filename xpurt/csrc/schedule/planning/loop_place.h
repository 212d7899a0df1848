// Where a program is in its outermost loop, by the kinds of its last ops. Uses no
// clock, no queue and no tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace xpurt {

// A place is known by the last eight ops, as a number of eight bits. A model of equal
// layers comes by most places once per layer. Those that it comes by most seldom, but
// regularly, tell one round of the loop from the next.
class LoopPlace {
 public:
  // Adds an op. `kind`: ops of a kind have the same number. `now`: microseconds.
  void add(uint64_t kind, double now) {
    last_kinds_ = last_kinds_ << 8 | eight_bits_of(kind);
    if (now >= slice_end_us_) {
      slice_end_us_ = now + kSliceUs;
      slice_ = (slice_ + 1) % kSlices;
      counts_[slice_] = {};
    }
    uint16_t& count = counts_[slice_][here()];
    if (count < UINT16_MAX) ++count;
  }

  uint8_t here() const { return eight_bits_of(last_kinds_); }

  struct Place {
    uint8_t number;
    double interval_us;  // mean time between two visits
  };

  // The place that is met most seldom among those met in each of the last slices of
  // time; none if there is no such place.
  std::optional<Place> rarest() const {
    std::optional<Place> found;
    size_t least = SIZE_MAX;
    for (size_t place = 0; place < kPlaces; ++place) {
      size_t sum = 0;
      bool is_regular = true;
      for (const auto& counts : counts_) {
        sum += counts[place];
        is_regular &= counts[place] > 0;
      }
      if (!is_regular || sum >= least) continue;
      least = sum;
      found = {static_cast<uint8_t>(place),
               kSlices * kSliceUs / static_cast<double>(sum)};
    }
    return found;
  }

 private:
  static constexpr size_t kPlaces = 256;
  static constexpr size_t kSlices = 3;
  static constexpr double kSliceUs = 2e6;

  // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4).
  static uint8_t eight_bits_of(uint64_t number) {
    return static_cast<uint8_t>(number * 0x9E3779B97F4A7C15u >> 56);
  }

  uint64_t last_kinds_ = 0;  // eight bits for each
  double slice_end_us_ = 0;
  size_t slice_ = 0;
  std::array<std::array<uint16_t, kPlaces>, kSlices> counts_{};
};

}  // namespace xpurt
