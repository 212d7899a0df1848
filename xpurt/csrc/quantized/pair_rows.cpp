#include "quantized/pair_rows.h"

#include <array>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>

#define WITH_AVX2 __attribute__((target("avx2,fma")))
#endif

namespace xpurt {

#if defined(__x86_64__)
namespace {

// Rows of sums that 16 registers hold, with the weights of a pair and a number.
constexpr int64_t kMostRows = 6;

// A sum as a number, and what follows.
struct Column {
  __m256 scale;
  __m256 bias;
};

WITH_AVX2 inline void finish(__m256i sums, const Column& column, const float* row_scale,
                             bool relu, float* result) {
  __m256 value = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), column.scale);
  if (row_scale != nullptr) value = _mm256_mul_ps(value, _mm256_set1_ps(*row_scale));
  value = _mm256_add_ps(value, column.bias);
  // The second operand is the result if one is NaN.
  if (relu) value = _mm256_max_ps(_mm256_setzero_ps(), value);
  _mm256_storeu_ps(result, value);
}

WITH_AVX2 inline __m256i eight_pairs(const int8_t* weight) {
  return _mm256_cvtepi8_epi16(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(weight)));
}

template <int64_t count>
WITH_AVX2 void multiply_rows(const PairPanel& of, const int16_t* const* inputs,
                             const float* scales, float* results, int64_t stride) {
  __m256i low[count], high[count];
#pragma GCC unroll 6
  for (int64_t i = 0; i < count; ++i) low[i] = high[i] = _mm256_setzero_si256();
  const int8_t* weight = of.weight;
  for (int64_t tap = 0; tap < of.tap_count; ++tap) {
    const int16_t* at[count];
#pragma GCC unroll 6
    for (int64_t i = 0; i < count; ++i) at[i] = inputs[i] + of.taps[tap];
    for (int64_t pair = 0; pair < of.pairs; ++pair) {
      const __m256i first = eight_pairs(weight);
      const __m256i second = eight_pairs(weight + kPairPanel);
      weight += 2 * kPairPanel;
#pragma GCC unroll 6
      for (int64_t i = 0; i < count; ++i) {
        int32_t two;
        std::memcpy(&two, at[i] + 2 * pair, sizeof(two));
        const __m256i number = _mm256_set1_epi32(two);
        low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(number, first));
        high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(number, second));
      }
    }
  }
  const Column left{_mm256_loadu_ps(of.scale), _mm256_loadu_ps(of.bias)};
  const Column right{_mm256_loadu_ps(of.scale + 8), _mm256_loadu_ps(of.bias + 8)};
#pragma GCC unroll 6
  for (int64_t i = 0; i < count; ++i) {
    const float* const scale = scales == nullptr ? nullptr : scales + i;
    finish(low[i], left, scale, of.relu, results + i * stride);
    finish(high[i], right, scale, of.relu, results + i * stride + 8);
  }
}

using MultiplyRows = void (*)(const PairPanel&, const int16_t* const*, const float*,
                              float*, int64_t);

template <int64_t... before>
constexpr std::array<MultiplyRows, sizeof...(before)> functions(
    std::integer_sequence<int64_t, before...>) {
  return {&multiply_rows<before + 1>...};
}

constexpr auto kMultiplyRows =
    functions(std::make_integer_sequence<int64_t, kMostRows>());

}  // namespace
#endif

void multiply_pairs(const PairPanel& panel, int64_t count, const int16_t* const* inputs,
                    const float* scales, float* results, int64_t stride) {
#if defined(__x86_64__)
  // Groups of about equal size: a group of few rows reads the panel for little.
  const int64_t groups = (count + kMostRows - 1) / kMostRows;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t begin = group * count / groups;
    const int64_t end = (group + 1) * count / groups;
    kMultiplyRows[end - begin - 1](panel, inputs + begin,
                                   scales == nullptr ? nullptr : scales + begin,
                                   results + begin * stride, stride);
  }
#endif
}

}  // namespace xpurt
