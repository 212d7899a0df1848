#include "quantized/padded_pixels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

namespace xpurt {
namespace {

void quantize_pixels(const float* from, int64_t pixels, int64_t channels, int64_t pixel,
                     Affine affine, int16_t* to) {
  if (channels == pixel) {
    quantize_centered(from, pixels * channels, affine, to);
    return;
  }
  for (int64_t index = 0; index < pixels; ++index, to += pixel) {
    quantize_centered(from + index * channels, channels, affine, to);
    std::fill(to + channels, to + pixel, int16_t{0});
  }
}

}  // namespace

PaddedPixels::PaddedPixels(const at::Tensor& x, Affine affine, Padding padding,
                           int64_t multiple)
    : height(padding.height),
      pixel((x.size(1) + multiple - 1) / multiple * multiple),
      row(padding.width * pixel),
      memory(at::empty({x.size(0) * height * row + 1}, at::kShort)) {
  const int64_t channels = x.size(1), width = x.size(3);
  const float* const from = x.const_data_ptr<float>();
  auto* const values = memory.mutable_data_ptr<int16_t>();
  values[memory.numel() - 1] = 0;
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
                      channels, pixel, affine, first);
    }
  });
}

}  // namespace xpurt
