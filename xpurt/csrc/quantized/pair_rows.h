// The loop of products of pairs.
#pragma once

#include <cstdint>

namespace xpurt {

constexpr int64_t kPairPanel = 16;  // output channels

// A panel of a weight, and what becomes of the sums.
struct PairPanel {
  const int64_t*
      taps;  // where the inputs of each tap begin, after a result's first one
  int64_t tap_count;
  int64_t pairs;         // of a tap
  const int8_t* weight;  // (taps, pairs, kPairPanel, 2)
  const float* scale;    // (kPairPanel)
  const float* bias;     // (kPairPanel)
  bool relu;             // keeps NaN
};

// `count` results of kPairPanel columns each, `stride` floats apart. inputs: the first
// one of each result. scales: of each result, or null. Only for processors with AVX2.
void multiply_pairs(const PairPanel& panel, int64_t count, const int16_t* const* inputs,
                    const float* scales, float* results, int64_t stride);

}  // namespace xpurt
