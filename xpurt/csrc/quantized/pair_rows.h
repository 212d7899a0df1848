// The loops of products of pairs.
#pragma once

#include <cstdint>

namespace xpurt {

constexpr int64_t kPairPanel = 16;  // output channels

// What becomes of the sums.
struct PairEpilogue {
  const float* scale;  // of each output channel
  const float* bias;
  bool relu;  // keeps NaN
};

// Panels of a weight.
struct PairPanels {
  const int64_t*
      taps;  // where the inputs of each tap begin, after a result's first one
  int64_t tap_count;
  int64_t pairs;         // of a tap
  const int8_t* weight;  // (panels, taps, pairs, kPairPanel, 2)
  int64_t count;
  PairEpilogue epilogue;

  // Of a panel of the weight.
  int64_t size() const { return tap_count * pairs * 2 * kPairPanel; }
  PairPanels part(int64_t first, int64_t panels) const;
};

// Rows of results, and what is added to each, or null. They are `stride` floats apart.
struct PairResults {
  float* values;
  const float* other;
  int64_t stride;

  PairResults from(int64_t row, int64_t column) const {
    const int64_t place = row * stride + column;
    return {values + place, other == nullptr ? nullptr : other + place, stride};
  }
};

// `rows` results of kPairPanel columns per panel. inputs: the first one of each row.
// scales: of each row, or null. Only for processors with AVX2.
void multiply_pairs(const PairPanels& panels, int64_t rows,
                    const int16_t* const* inputs, const float* scales,
                    const PairResults& results);

// (rows, 2 * pairs) times (pairs, kPairPanel, 2), in sums that wrap around. left,
// sums: rows that are so many integers apart. Only for processors with AVX2.
void multiply_pair_matrices(const int16_t* left, int64_t left_stride, int64_t rows,
                            const int16_t* panel, int64_t pairs, int32_t* sums,
                            int64_t stride);

}  // namespace xpurt
