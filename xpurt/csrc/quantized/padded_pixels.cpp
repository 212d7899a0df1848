#include "quantized/padded_pixels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace xpurt {

void quantize_pixels(const float* from, int64_t pixels, int64_t channels, Affine affine,
                     int16_t* to) {
  if (channels % 2 == 0) {
    quantize_centered(from, pixels * channels, affine, to);
    return;
  }
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    quantize_centered(from + pixel * channels, channels, affine, to);
    to += channels;
    *to++ = 0;
  }
}

PaddedPixels::PaddedPixels(const at::Tensor& x, Affine affine, Padding padding)
    : height(padding.height),
      pixel((x.size(1) + 1) / 2 * 2),
      row(padding.width * pixel),
      memory(at::empty({x.size(0), height, row}, at::kShort)) {
  const int64_t channels = x.size(1), width = x.size(3);
  const float* const from = x.const_data_ptr<float>();
  auto* const values = memory.mutable_data_ptr<int16_t>();
  at::parallel_for(0, x.size(0) * height, 8, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t image = index / height, y = index % height - padding.top;
      int16_t* const to = values + index * row;
      if (y < 0 || y >= x.size(2)) {
        std::fill_n(to, row, int16_t{0});
        continue;
      }
      int16_t* const first = to + padding.left * pixel;
      int16_t* const last = first + width * pixel;
      std::fill(to, first, int16_t{0});
      std::fill(last, to + row, int16_t{0});
      quantize_pixels(from + (image * x.size(2) + y) * width * channels, width,
                      channels, affine, first);
    }
  });
}

}  // namespace xpurt
