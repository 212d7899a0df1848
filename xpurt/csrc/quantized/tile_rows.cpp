#include "quantized/tile_rows.h"

#include "winograd/tiles.h"

#if defined(__x86_64__)
#include "quantized/pair_lanes.h"
#endif

namespace xpurt {

#if defined(__x86_64__)
namespace {

// Without a sign: sums and products wrap around.
using Shorts = uint16_t __attribute__((vector_size(32)));
using Ints = uint32_t __attribute__((vector_size(32)));
using SignedInts = int32_t __attribute__((vector_size(32)));
using ShortsAnywhere = uint16_t __attribute__((vector_size(32), aligned(2), may_alias));
using IntsAnywhere = uint32_t __attribute__((vector_size(32), aligned(4), may_alias));

constexpr uint32_t kInverseOf225 = 2271560481u;
static_assert(kInverseOf225 * 225u == 1u);

// d: six pixels, `step` apart. The rows of the matrix are in the note.
WITH_AVX2 inline void transform_pixels(Shorts* d, int64_t step) {
  const Shorts d0 = d[0], d1 = d[step], d2 = d[2 * step];
  const Shorts d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  const Shorts even = d4 - d2, odd = d3 - d1;
  const Shorts twice_even = even + even, twice_odd = odd + odd;
  const Shorts sum = twice_even - (d3 + d3 + d3);
  const Shorts difference = (d2 + d2 + d2) - twice_odd;
  const Shorts first = d0 - d2 + even, last = d5 - d3 - odd;
  d[0] = first + first - (twice_odd + odd);
  d[step] = sum - difference;
  d[2 * step] = sum + difference;
  d[3 * step] = twice_even + odd;
  d[4 * step] = even - twice_odd;
  d[5 * step] = last + last - (twice_even + even);
}

// m: six products, `step` apart, of which four results are made.
WITH_AVX2 inline void transform_products(Ints* m, int64_t step) {
  const Ints m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
  const Ints sum = m1 + m2, difference = m1 - m2;
  m[0] = m[0] + sum + m3 + (m4 << 3);
  m[step] = difference + ((m3 - m4 - m4) << 1);
  m[2 * step] = sum + ((m3 + m3 + m4) << 1);
  m[3 * step] = difference + (m3 << 3) - m4 + m[5 * step];
}

}  // namespace
#endif

#if defined(__x86_64__)
WITH_AVX2 void transform_tile_pixels(const TilePixels& pixels, int64_t channels,
                                     int64_t stride, int16_t* made) {
  for (int64_t c = 0; c < channels; c += kTileChannels) {
    Shorts d[kProducts];
#pragma GCC unroll 6
    for (int64_t i = 0; i < kPixels; ++i) {
      const int16_t* const row = pixels.first + i * pixels.row + c;
#pragma GCC unroll 6
      for (int64_t j = 0; j < kPixels; ++j) {
        d[i * kPixels + j] =
            *reinterpret_cast<const ShortsAnywhere*>(row + j * pixels.pixel);
      }
      transform_pixels(d + i * kPixels, 1);
    }
#pragma GCC unroll 6
    for (int64_t j = 0; j < kPixels; ++j) {
      transform_pixels(d + j, kPixels);
#pragma GCC unroll 6
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        *reinterpret_cast<ShortsAnywhere*>(made + product * stride + c) = d[product];
      }
    }
  }
}

WITH_AVX2 void finish_tile_pixels(const int32_t* products, int64_t stride,
                                  int64_t channels, const PairEpilogue& epilogue,
                                  const float* const* others, float* const* results) {
  const __m256 floor = floor_of(epilogue);
  for (int64_t c = 0; c < channels; c += 8) {
    Ints m[kProducts];
#pragma GCC unroll 6
    for (int64_t j = 0; j < kPixels; ++j) {
#pragma GCC unroll 6
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        m[product] =
            *reinterpret_cast<const IntsAnywhere*>(products + product * stride + c);
      }
      transform_products(m + j, kPixels);
    }
    const Column column = column_at(epilogue, c);
#pragma GCC unroll 4
    for (int64_t i = 0; i < kResults; ++i) {
      transform_products(m + i * kPixels, 1);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kResults; ++j) {
        const auto sums =
            reinterpret_cast<SignedInts>(m[i * kPixels + j] * kInverseOf225) >> 2;
        const int64_t pixel = i * kResults + j;
        const float* const added = others == nullptr ? nullptr : others[pixel] + c;
        finish(reinterpret_cast<__m256i>(sums), column, nullptr, floor, added,
               results[pixel] + c);
      }
    }
  }
}
#else
void transform_tile_pixels(const TilePixels&, int64_t, int64_t, int16_t*) {}
void finish_tile_pixels(const int32_t*, int64_t, int64_t, const PairEpilogue&,
                        const float* const*, float* const*) {}
#endif

}  // namespace xpurt
