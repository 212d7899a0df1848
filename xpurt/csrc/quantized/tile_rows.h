// The transforms of tiles of integers, see Note [Winograd in integers].
#pragma once

#include <cstdint>

#include "quantized/pair_rows.h"

namespace xpurt {

constexpr int64_t kTileChannels = 16;  // the channels are a multiple

// The pixels of an image in 16 bits, in channels last.
struct TilePixels {
  const int16_t* first;  // of the tile
  int64_t row;           // from a row of pixels to the next
  int64_t pixel;         // from a pixel to the next
};

// From a tile of 6x6 pixels to a row in each of 36 matrices, `stride` integers apart.
// Only for processors with AVX2.
void transform_tile_pixels(const TilePixels& pixels, int64_t channels, int64_t stride,
                           int16_t* made);

// From a row in each of 36 matrices to 4x4 results, which are pixels of all channels.
// others: what is added to each, or null. Only for processors with AVX2.
void finish_tile_pixels(const int32_t* products, int64_t stride, int64_t channels,
                        const PairEpilogue& epilogue, const float* const* others,
                        float* const* results);

}  // namespace xpurt
