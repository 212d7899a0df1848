#include "quantized/pair_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#if defined(__x86_64__)
#include "quantized/pair_lanes.h"
#endif

namespace xpurt {

#if defined(__x86_64__)
namespace {

// Rows of sums that 16 registers hold, with the weights of a pair and a number.
constexpr int64_t kMostRows = 6;

// Note [Panels within rows]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// A group of rows is multiplied by panels of so many bytes together before the next
// group begins, so that results are written in runs. One panel after the other for all
// rows writes 64 bytes of each row: with few inputs and many results it waits for
// memory. A product of 25,088 rows, 64 inputs and 256 outputs ran at 44 G
// multiplications and additions per second so, and at 54 in this order; with 256
// inputs and more both ran at 65 to 68, where vpmaddwd and vpaddd alone reach 77 (AMD
// EPYC of Zen 3, one thread, processor time beside other programs, 2026-11-30).
constexpr int64_t kNearBytes = 32 * 1024;

WITH_AVX2 inline __m256i eight_pairs(const int8_t* weight) {
  return _mm256_cvtepi8_epi16(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(weight)));
}

WITH_AVX2 inline __m256i eight_pairs(const int16_t* weight) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weight));
}

// Adds the products of `pairs` pairs of each row to its sums. ahead: pairs, from which
// the weight is fetched; 0 leaves that to the processor.
template <int64_t count, int64_t ahead, typename Weight>
WITH_AVX2 __attribute__((always_inline)) inline const Weight* add_products(
    const int16_t* const* at, int64_t pairs, const Weight* weight, __m256i* low,
    __m256i* high) {
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const __m256i first = eight_pairs(weight);
    const __m256i second = eight_pairs(weight + kPairPanel);
    weight += 2 * kPairPanel;
    if constexpr (ahead > 0) __builtin_prefetch(weight + ahead * 2 * kPairPanel);
#pragma GCC unroll 6
    for (int64_t i = 0; i < count; ++i) {
      int32_t two;
      std::memcpy(&two, at[i] + 2 * pair, sizeof(two));
      const __m256i number = _mm256_set1_epi32(two);
      low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(number, first));
      high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(number, second));
    }
  }
  return weight;
}

template <int64_t count>
WITH_AVX2 void multiply_rows(const PairPanels& of, const int16_t* const* inputs,
                             const float* scales, const PairResults& results) {
  const __m256 floor = floor_of(of.epilogue);
  const int8_t* weight = of.weight;
  for (int64_t panel = 0; panel < of.count; ++panel) {
    __m256i low[count], high[count];
#pragma GCC unroll 6
    for (int64_t i = 0; i < count; ++i) low[i] = high[i] = _mm256_setzero_si256();
    for (int64_t tap = 0; tap < of.tap_count; ++tap) {
      const int16_t* at[count];
#pragma GCC unroll 6
      for (int64_t i = 0; i < count; ++i) at[i] = inputs[i] + of.taps[tap];
      weight = add_products<count, 0>(at, of.pairs, weight, low, high);
    }
    const int64_t first = panel * kPairPanel;
    const Column left = column_at(of.epilogue, first);
    const Column right = column_at(of.epilogue, first + 8);
#pragma GCC unroll 6
    for (int64_t i = 0; i < count; ++i) {
      const float* const scale = scales == nullptr ? nullptr : scales + i;
      const PairResults to = results.from(i, first), next = results.from(i, first + 8);
      finish(low[i], left, scale, floor, to.other, to.values);
      finish(high[i], right, scale, floor, next.other, next.values);
    }
  }
}

template <int64_t count>
WITH_AVX2 void multiply_matrix_rows(const int16_t* left, int64_t left_stride,
                                    const int16_t* panel, int64_t pairs, int32_t* sums,
                                    int64_t stride) {
  __m256i low[count], high[count];
  const int16_t* at[count];
#pragma GCC unroll 6
  for (int64_t i = 0; i < count; ++i) {
    low[i] = high[i] = _mm256_setzero_si256();
    at[i] = left + i * left_stride;
  }
  add_products<count, 16>(at, pairs, panel, low, high);
#pragma GCC unroll 6
  for (int64_t i = 0; i < count; ++i) {
    auto* const to = reinterpret_cast<__m256i*>(sums + i * stride);
    _mm256_storeu_si256(to, low[i]);
    _mm256_storeu_si256(to + 1, high[i]);
  }
}

using MultiplyRows = void (*)(const PairPanels&, const int16_t* const*, const float*,
                              const PairResults&);
using MultiplyMatrixRows = void (*)(const int16_t*, int64_t, const int16_t*, int64_t,
                                    int32_t*, int64_t);

template <int64_t... before>
constexpr std::array<MultiplyRows, sizeof...(before)> functions(
    std::integer_sequence<int64_t, before...>) {
  return {&multiply_rows<before + 1>...};
}

template <int64_t... before>
constexpr std::array<MultiplyMatrixRows, sizeof...(before)> matrix_functions(
    std::integer_sequence<int64_t, before...>) {
  return {&multiply_matrix_rows<before + 1>...};
}

using RowCounts = std::make_integer_sequence<int64_t, kMostRows>;
constexpr auto kMultiplyRows = functions(RowCounts());
constexpr auto kMultiplyMatrixRows = matrix_functions(RowCounts());

// Groups of about equal size: a group of few rows reads the panel for little.
template <typename Run>
void in_groups(int64_t count, const Run& run) {
  const int64_t groups = (count + kMostRows - 1) / kMostRows;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t begin = group * count / groups;
    run(begin, (group + 1) * count / groups - begin);
  }
}

}  // namespace
#endif

PairPanels PairPanels::part(int64_t first, int64_t panels) const {
  PairPanels found = *this;
  found.weight += first * size();
  found.count = panels;
  found.epilogue.scale += first * kPairPanel;
  found.epilogue.bias += first * kPairPanel;
  return found;
}

void multiply_pairs(const PairPanels& panels, int64_t rows,
                    const int16_t* const* inputs, const float* scales,
                    const PairResults& results) {
#if defined(__x86_64__)
  const int64_t most = std::max(kNearBytes / panels.size(), int64_t{1});
  for (int64_t first = 0; first < panels.count; first += most) {
    const PairPanels near = panels.part(first, std::min(most, panels.count - first));
    in_groups(rows, [&](int64_t begin, int64_t count) {
      kMultiplyRows[count - 1](near, inputs + begin,
                               scales == nullptr ? nullptr : scales + begin,
                               results.from(begin, first * kPairPanel));
    });
  }
#endif
}

void multiply_pair_matrices(const int16_t* left, int64_t left_stride, int64_t rows,
                            const int16_t* panel, int64_t pairs, int32_t* sums,
                            int64_t stride) {
#if defined(__x86_64__)
  in_groups(rows, [&](int64_t begin, int64_t count) {
    kMultiplyMatrixRows[count - 1](left + begin * left_stride, left_stride, panel,
                                   pairs, sums + begin * stride, stride);
  });
#endif
}

}  // namespace xpurt
