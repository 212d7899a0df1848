// The loops over channels, compiled for each instruction set.
#pragma once

#include "winograd/tiles.h"

namespace xpurt {

// What is added to a result, or null, and whether negative ones become 0.
struct Epilogue {
  const float* bias;   // (out_channels)
  const float* other;  // as the result
  bool relu;           // keeps NaN
};

// The first block of a pixel's channels. `block`: as in Places.
template <typename Float>
struct Pixel {
  Float* first;
  int64_t block;
};

// Channels of a pixel, of which `adjacent` are adjacent.
struct Channels {
  int64_t number;
  int64_t adjacent;
};

// Rows that are added to those of a product, `stride` floats apart; or null.
struct Added {
  Added after(int64_t rows) const {
    return first == nullptr ? *this : Added{first + rows * stride, stride};
  }

  const float* first;
  int64_t stride;
};

// What follows a sum. relu keeps NaN; gelu is that of the error function.
enum class AfterSum : uint8_t { none, relu, gelu };

struct Kernels {
  int64_t lanes;  // whole ones make a block of channels
  int64_t panel;  // adjacent columns of a packed weight
  // A part's matrices in floats, so that they stay in the cache of a core, and its
  // fewest tiles, which a read of the weight serves.
  int64_t part_floats;
  int64_t least_part;

  // From the pixels of a tile to a row in each of 36 matrices, `stride` floats apart.
  void (*transform_tile)(const Pixel<const float>* pixels, Channels channels,
                         int64_t stride, float* made);

  // (rows, inner) times (inner, panel). left: rows `left_stride` floats apart; panel:
  // contiguous; next: the panel that comes after it, or any address; product: rows
  // `product_stride` floats apart.
  void (*multiply_panel)(const float* left, int64_t left_stride, int64_t rows,
                         const float* panel, int64_t inner, const float* next,
                         float* product, int64_t product_stride, Added added);

  // Adds a bias, or none if null, to adjacent values of whole panels, and computes what
  // follows.
  void (*finish_row)(const float* bias, AfterSum after, float* values, int64_t size);

  // From a row in each of 36 matrices to the results of a tile. others: what is added
  // to each.
  void (*finish_tile)(const float* products, int64_t stride, Channels channels,
                      const Epilogue& epilogue, const Pixel<const float>* others,
                      const Pixel<float>* results);
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

// Those of PyTorch's instruction set (see ATEN_CPU_CAPABILITY); null if there are none.
const Kernels* winograd_kernels();

}  // namespace xpurt
