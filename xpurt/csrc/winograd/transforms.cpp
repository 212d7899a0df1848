#include "winograd/transforms.h"

#include <vector>

namespace xpurt {

void transform_input(const Kernels& kernels, const TiledConvolution& conv,
                     const float* input, int64_t first, int64_t count,
                     const Matrices& matrices, float* made) {
  const Channels channels{conv.in_channels, conv.adjacent(conv.in_channels)};
  const std::vector<float> zeros(channels.adjacent);  // a pixel of the padding
  const Places places(channels.adjacent, conv.in_channels, conv.height, conv.width);
  for (int64_t row = 0; row < count; ++row) {
    const Tile tile(conv, first + row);
    Pixel<const float> pixels[kProducts];
    for (int64_t i = 0; i < kPixels; ++i) {
      for (int64_t j = 0; j < kPixels; ++j) {
        const int64_t y = tile.top + i - conv.padding_height;
        const int64_t x = tile.left + j - conv.padding_width;
        const bool inside = y >= 0 && y < conv.height && x >= 0 && x < conv.width;
        Pixel<const float>& pixel = pixels[i * kPixels + j];
        pixel = {zeros.data(), 0};
        if (inside) pixel = {input + places.of(tile.image, y, x), places.block};
      }
    }
    kernels.transform_tile(pixels, channels, matrices.stride,
                           made + row * matrices.row_stride);
  }
}

void transform_output(const Kernels& kernels, const TiledConvolution& conv,
                      const float* products, const Matrices& matrices, int64_t first,
                      int64_t count, const TileEpilogue& epilogue, float* result) {
  const Channels channels{conv.out_channels, conv.adjacent(conv.out_channels)};
  std::vector<float> outside(channels.adjacent);  // written, and not used
  const Places places(channels.adjacent, conv.out_channels, conv.out_height(),
                      conv.out_width());
  for (int64_t row = 0; row < count; ++row) {
    const Tile tile(conv, first + row);
    Pixel<float> results[kResults * kResults];
    Pixel<const float> others[kResults * kResults];
    for (int64_t i = 0; i < kResults; ++i) {
      for (int64_t j = 0; j < kResults; ++j) {
        const int64_t y = tile.top + i;
        const int64_t x = tile.left + j;
        const bool inside = y < conv.out_height() && x < conv.out_width();
        const int64_t index = i * kResults + j;
        results[index] = {outside.data(), 0};
        others[index] = {outside.data(), 0};
        if (!inside) continue;
        const int64_t at = places.of(tile.image, y, x);
        results[index] = {result + at, places.block};
        if (epilogue.other != nullptr)
          others[index] = {epilogue.other + at, places.block};
      }
    }
    kernels.finish_tile(products + row * matrices.row_stride, matrices.stride, channels,
                        epilogue, others, results);
  }
}

}  // namespace xpurt
