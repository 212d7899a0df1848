// Sums of products in eight lanes as numbers. For x86 alone.
#pragma once

#include <immintrin.h>

#include <limits>

#include "quantized/pair_rows.h"

#define WITH_AVX2 __attribute__((target("avx2,fma")))

namespace xpurt {

// A sum as a number, and what follows.
struct Column {
  __m256 scale;
  __m256 bias;
};

WITH_AVX2 inline Column column_at(const PairEpilogue& epilogue, int64_t channel) {
  return {_mm256_loadu_ps(epilogue.scale + channel),
          _mm256_loadu_ps(epilogue.bias + channel)};
}

// What no result is below.
WITH_AVX2 inline __m256 floor_of(const PairEpilogue& epilogue) {
  return _mm256_set1_ps(epilogue.relu ? 0 : -std::numeric_limits<float>::infinity());
}

// added: to the result, or null. One rounding of the last product and the bias: the
// compiler would choose so per place.
WITH_AVX2 inline void finish(__m256i sums, const Column& column, const float* row_scale,
                             __m256 floor, const float* added, float* result) {
  __m256 value = _mm256_cvtepi32_ps(sums);
  if (row_scale == nullptr) {
    value = _mm256_fmadd_ps(value, column.scale, column.bias);
  } else {
    value = _mm256_mul_ps(value, column.scale);
    value = _mm256_fmadd_ps(value, _mm256_set1_ps(*row_scale), column.bias);
  }
  if (added != nullptr) value = _mm256_add_ps(value, _mm256_loadu_ps(added));
  // The second operand is the result if one is NaN.
  _mm256_storeu_ps(result, _mm256_max_ps(floor, value));
}

}  // namespace xpurt
