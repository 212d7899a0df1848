#include "winograd/transforms.h"

#include <vector>

#include "winograd/lanes.h"

namespace xpurt {
namespace {

// The interpolation points are 0, A, -A, B, -B and infinity.
constexpr float kA = 0.625f;
constexpr float kB = 1.5f;
constexpr float kA2 = kA * kA;
constexpr float kB2 = kB * kB;

// d: six pixels, `step` apart.
INLINE_OF_LANES void transform_pixels(Lanes* d, int64_t step) {
  const Lanes d0 = d[0], d1 = d[step], d2 = d[2 * step];
  const Lanes d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  const Lanes even_a = d4 - kB2 * d2, odd_a = kA * (d3 - kB2 * d1);
  const Lanes even_b = d4 - kA2 * d2, odd_b = kB * (d3 - kA2 * d1);
  d[0] = kA2 * kB2 * d0 - (kA2 + kB2) * d2 + d4;
  d[step] = even_a + odd_a;
  d[2 * step] = even_a - odd_a;
  d[3 * step] = even_b + odd_b;
  d[4 * step] = even_b - odd_b;
  d[5 * step] = kA2 * kB2 * d1 - (kA2 + kB2) * d3 + d5;
}

// m: six products, `step` apart, of which four results are made.
INLINE_OF_LANES void transform_products(Lanes* m, int64_t step) {
  const Lanes m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
  const Lanes sum_a = m1 + m2, difference_a = kA * (m1 - m2);
  const Lanes sum_b = m3 + m4, difference_b = kB * (m3 - m4);
  m[0] = m[0] + sum_a + sum_b;
  m[step] = difference_a + difference_b;
  m[2 * step] = kA2 * sum_a + kB2 * sum_b;
  m[3 * step] = kA2 * difference_a + kB2 * difference_b + m[5 * step];
}

// The first channels of a pixel. `block`: as in Places.
template <typename Float>
struct Pixel {
  Float* at(int64_t channel) const { return first + channel / kLanes * block; }

  Float* first;
  int64_t block;
};

// pixels: those of the tile.
OF_LANES void transform_tile(const Pixel<const float>* pixels, int64_t channels,
                             int64_t stride, float* made) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Lanes d[kProducts];
    for (int64_t i = 0; i < kPixels; ++i) {
      for (int64_t j = 0; j < kPixels; ++j) {
        load(d[i * kPixels + j], pixels[i * kPixels + j].at(c));
      }
      transform_pixels(d + i * kPixels, 1);
    }
    for (int64_t j = 0; j < kPixels; ++j) {
      transform_pixels(d + j, kPixels);
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        store(made + product * stride + c, d[product]);
      }
    }
  }
}

// results, others: those of the tile, and what is added to each.
OF_LANES void finish_tile(const float* products, int64_t stride, int64_t channels,
                          const Epilogue& epilogue, const Pixel<const float>* others,
                          const Pixel<float>* results) {
  for (int64_t c = 0; c < channels; c += kLanes) {
    Lanes m[kProducts];
    for (int64_t j = 0; j < kPixels; ++j) {
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        load(m[product], products + product * stride + c);
      }
      transform_products(m + j, kPixels);
    }
    Lanes bias{};
    if (epilogue.bias != nullptr) load(bias, epilogue.bias + c);
    for (int64_t i = 0; i < kResults; ++i) {
      transform_products(m + i * kPixels, 1);
      for (int64_t j = 0; j < kResults; ++j) {
        Lanes value = m[i * kPixels + j] + bias;
        if (epilogue.other != nullptr) {
          Lanes other;
          load(other, others[i * kResults + j].at(c));
          value += other;
        }
        if (epilogue.relu) value = value < 0 ? Lanes{} : value;
        store(results[i * kResults + j].at(c), value);
      }
    }
  }
}

}  // namespace

void transform_input(const TiledConvolution& conv, const float* input, int64_t first,
                     int64_t count, const Matrices& matrices, float* made) {
  const std::vector<float> zeros(kLanes);  // a pixel of the padding
  const Places places(conv.in_blocks, conv.in_channels, conv.height, conv.width);
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
    transform_tile(pixels, conv.in_channels, matrices.stride,
                   made + row * matrices.row_stride);
  }
}

void transform_output(const TiledConvolution& conv, const float* products,
                      const Matrices& matrices, int64_t first, int64_t count,
                      const Epilogue& epilogue, float* result) {
  std::vector<float> outside(kLanes);  // written, and not used
  const Places places(conv.in_blocks, conv.out_channels, conv.out_height(),
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
    finish_tile(products + row * matrices.row_stride, matrices.stride,
                conv.out_channels, epilogue, others, results);
  }
}

}  // namespace xpurt
