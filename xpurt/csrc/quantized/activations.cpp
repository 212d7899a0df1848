#include "quantized/activations.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "quantized/vectors.h"

namespace xpurt {
namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

// std::bit_cast would be called in these loops: it is compiled for any processor.

// As integers, magnitudes are in the order of their values, and a NaN is the largest.
IN_ANY_ORDER float largest_magnitude(const float* __restrict x, int64_t size) {
  int32_t largest = 0;
  for (int64_t i = 0; i < size; ++i) {
    const int32_t bits = __builtin_bit_cast(int32_t, x[i]) & 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return __builtin_bit_cast(float, largest);
}

// 1.5 * 2^23: adding it rounds to an integer, half to even, in the low bits.
constexpr float kRounding = 12582912.0f;

// added: to the rounded values, which are 0 for a value of 0.
template <typename Quantized>
[[gnu::always_inline]] inline void quantize_in_steps(const float* __restrict x,
                                                     int64_t size, float inverse,
                                                     int32_t zero_point, int32_t added,
                                                     Quantized* __restrict quantized) {
  const float lowest = -static_cast<float>(zero_point);
  const float highest = static_cast<float>(255 - zero_point);
  const int32_t shift = added - __builtin_bit_cast(int32_t, kRounding);
  for (int64_t i = 0; i < size; ++i) {
    float value = x[i] * inverse;
    value = value > lowest ? value : lowest;  // also for NaN
    value = value < highest ? value : highest;
    // Not reordered: the sum is read as an integer, and by no function.
    quantized[i] =
        static_cast<Quantized>(__builtin_bit_cast(int32_t, value + kRounding) + shift);
  }
}

IN_ANY_ORDER void quantize_values(const float* __restrict x, int64_t size,
                                  float inverse, int32_t zero_point,
                                  uint8_t* __restrict quantized) {
  quantize_in_steps(x, size, inverse, zero_point, zero_point, quantized);
}

IN_ANY_ORDER void quantize_values(const float* __restrict x, int64_t size,
                                  float inverse, int32_t zero_point,
                                  int16_t* __restrict quantized) {
  quantize_in_steps(x, size, inverse, zero_point, 0, quantized);
}

IN_ANY_ORDER void scale_row(float* __restrict out, int64_t columns, float scale,
                            const float* __restrict bias) {
  if (bias == nullptr) {
    for (int64_t n = 0; n < columns; ++n) out[n] *= scale;
  } else {
    for (int64_t n = 0; n < columns; ++n) out[n] = out[n] * scale + bias[n];
  }
}

// The inverse of a scale; 0 of a row of zeros and of one that is not finite.
float inverse_of(float scale) {
  return scale > 0 && std::isfinite(1 / scale) ? 1 / scale : 0;
}

template <typename Run>
void over_rows(int64_t rows, int64_t columns, const Run& run) {
  at::parallel_for(0, rows, kGrain / (columns + 1) + 1,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) run(row);
                   });
}

}  // namespace

void quantize_rows(const float* x, int64_t rows, int64_t columns, uint8_t* quantized,
                   float* scales) {
  over_rows(rows, columns, [&](int64_t row) {
    const float* values = x + row * columns;
    scales[row] = largest_magnitude(values, columns) / 127;
    quantize_values(values, columns, inverse_of(scales[row]), kRowZeroPoint,
                    quantized + row * columns);
  });
}

void quantize(const float* x, int64_t size, Affine affine, uint8_t* quantized) {
  const float inverse = inverse_of(affine.scale);
  at::parallel_for(0, size, kGrain, [&](int64_t begin, int64_t end) {
    quantize_values(x + begin, end - begin, inverse, affine.zero_point,
                    quantized + begin);
  });
}

void quantize_centered(const float* x, int64_t size, Affine affine,
                       int16_t* quantized) {
  quantize_values(x, size, inverse_of(affine.scale), affine.zero_point, quantized);
}

float quantize_row_centered(const float* x, int64_t columns, int16_t* quantized) {
  const float scale = largest_magnitude(x, columns) / 127;
  quantize_values(x, columns, inverse_of(scale), kRowZeroPoint, quantized);
  return scale;
}

void scale_rows(float* out, int64_t rows, int64_t columns, const float* scales,
                const float* bias) {
  over_rows(rows, columns, [&](int64_t row) {
    scale_row(out + row * columns, columns, scales[row], bias);
  });
}

}  // namespace xpurt
