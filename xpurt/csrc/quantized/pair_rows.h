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

// A panel of a weight.
struct PairPanel {
  const int64_t*
      taps;  // where the inputs of each tap begin, after a result's first one
  int64_t tap_count;
  int64_t pairs;         // of a tap
  const int8_t* weight;  // (taps, pairs, kPairPanel, 2)
  PairEpilogue epilogue;
};

// `count` results of kPairPanel columns each, `stride` floats apart. inputs: the first
// one of each result. scales: of each result, or null. Only for processors with AVX2.
void multiply_pairs(const PairPanel& panel, int64_t count, const int16_t* const* inputs,
                    const float* scales, float* results, int64_t stride);

// (rows, 2 * pairs) times (pairs, kPairPanel, 2), in sums that wrap around. left,
// sums: rows that are so many integers apart. Only for processors with AVX2.
void multiply_pair_matrices(const int16_t* left, int64_t left_stride, int64_t rows,
                            const int16_t* panel, int64_t pairs, int32_t* sums,
                            int64_t stride);

}  // namespace xpurt
