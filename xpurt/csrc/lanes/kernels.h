// The loops over channels, compiled for each instruction set.
#pragma once

#include <cstdint>

namespace xpurt {

constexpr int64_t kResults = 4;    // rows and columns of results of a tile
constexpr int64_t kPixels = 6;     // rows and columns of the image that they need
constexpr int64_t kProducts = 36;  // numbers of a transformed tile, per channel
constexpr int64_t kChannels = 16;  // input channels are a multiple

// What is added to a result, or null, and whether negative ones become 0.
struct TileEpilogue {
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

// Of a key: rows of values for adjacent queries.
struct KeyRow {
  float* weights;         // scores at first
  float* changes;         // the gradients of weights at first, then of scores
  float* panels;          // changes as a row of each panel
  int64_t panel_stride;   // in floats
  const float* mask;      // what is added to a score, or null
  const float* sums;      // of each query: the logarithm of the sum of exp(score)
  const float* products;  // of each query: of its result and that result's gradient
  float scale;
};

// What follows a sum. relu keeps NaN; gelu is that of the error function.
enum class AfterSum : uint8_t { none, relu, gelu };

// Of a row of scores: the largest yet, and the sum of exp(score - most).
struct RowSum {
  float most;
  float sum;
};

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

  // From the taps of 3x3 of a panel of output channels, (9, panel), to a row in each of
  // 36 matrices, `stride` floats apart.
  void (*transform_taps)(const float* taps, int64_t stride, float* made);

  // (rows, inner) times (inner, panel). left: rows `left_stride` floats apart; panel:
  // contiguous; next: the panel that comes after it, or any address; product: rows
  // `product_stride` floats apart.
  void (*multiply_panel)(const float* left, int64_t left_stride, int64_t rows,
                         const float* panel, int64_t inner, const float* next,
                         float* product, int64_t product_stride, Added added);

  // Adds a bias, or none if null, to adjacent values of whole panels, and computes what
  // follows.
  void (*finish_row)(const float* bias, AfterSum after, float* values, int64_t size);

  // Replaces scores by exp(score * scale + mask - the largest one yet), and brings the
  // sum up to date. Returns the factor of what was summed before. mask: null for none,
  // else as long as whole lanes, as scores are. If sum.most is -inf nothing was.
  float (*weigh_row)(float* scores, int64_t size, float scale, const float* mask,
                     RowSum& sum);

  // From scores and the gradients of weights to weights and the gradients of scores,
  // of whole panels.
  void (*differentiate_row)(const KeyRow& row, int64_t size);

  float (*dot)(const float* a, const float* b, int64_t size);

  // A panel of the columns that are (rows, size) of `from`, with zeros after the last.
  // rows: at most a panel.
  void (*transpose_panel)(const float* from, int64_t stride, int64_t rows, int64_t size,
                          float* to);

  // A panel of rows of `size` values, at most a panel's, with zeros after the last.
  void (*copy_panel)(const float* from, int64_t stride, int64_t rows, int64_t size,
                     float* to);

  // bfloat16 to float, and back, rounded to the nearest, times a factor.
  void (*widen_row)(const uint16_t* from, int64_t size, float* to);
  void (*narrow_row)(const float* from, int64_t size, float factor, uint16_t* to);

  // to = from * factor
  void (*scale_row)(const float* from, int64_t size, float factor, float* to);

  // From a row in each of 36 matrices to the results of a tile. others: what is added
  // to each.
  void (*finish_tile)(const float* products, int64_t stride, Channels channels,
                      const TileEpilogue& epilogue, const Pixel<const float>* others,
                      const Pixel<float>* results);
};

extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;

// Those of PyTorch's instruction set (see ATEN_CPU_CAPABILITY); null if there are none.
const Kernels* lane_kernels();

}  // namespace xpurt
