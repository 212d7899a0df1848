// Activations in 8 bits without a sign, and the scales of products.
#pragma once

#include <cstdint>

namespace xpurt {

// A value x is stored as round(x / scale) + zero_point, clamped to 0..255.
struct Affine {
  float scale;
  int32_t zero_point;
};

// Quantizes each row by itself. The zero point is 128, and a row's scale is its largest
// magnitude over 127: NaN if the row has a NaN, and infinite if it has an infinity.
constexpr int32_t kRowZeroPoint = 128;
void quantize_rows(const float* x, int64_t rows, int64_t columns, uint8_t* quantized,
                   float* scales);

void quantize(const float* x, int64_t size, Affine affine, uint8_t* quantized);

// The same without the zero point, in 16 bits; on the calling thread.
void quantize_centered(const float* x, int64_t size, Affine affine, int16_t* quantized);

// A row by itself; returns its scale.
float quantize_row_centered(const float* x, int64_t columns, int16_t* quantized);

// out[m, n] = out[m, n] * scales[m] + bias[n]. `bias`: may be nullptr.
void scale_rows(float* out, int64_t rows, int64_t columns, const float* scales,
                const float* bias);

}  // namespace xpurt
