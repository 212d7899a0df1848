#include "quantized/pair_tiles.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "quantized/packed_weight.h"
#include "quantized/padded_pixels.h"
#include "quantized/panels.h"
#include "quantized/tile_rows.h"
#include "lanes/lines.h"
#include "winograd/parts.h"
#include "winograd/tiles.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr int64_t kStepGrain = 8;   // tiles; panels
constexpr int64_t kMostTiles = 36;  // of a part: they stay in the cache of a core
constexpr int64_t kLeastTiles = 8;  // of a thread: they pay for reading the weight
constexpr int64_t kMostChannels = 1827;

constexpr int32_t kTransform[kPixels][3] = {{15, 0, 0}, {-5, -5, -5}, {5, -5, 5},
                                            {1, 2, 4},  {-4, 2, -1},  {0, 0, 15}};

TiledConvolution tiled(const Tensor& x, int64_t out_channels,
                       const ConvolutionShape& shape) {
  return {0,         x.size(0), x.size(1),        out_channels,
          x.size(2), x.size(3), shape.padding[0], shape.padding[1]};
}

// Cut tiles compute results that are not used.
bool pays(const TiledConvolution& conv) {
  const int64_t results = conv.images * conv.out_height() * conv.out_width();
  return conv.tiles() >= kLeastTiles * at::get_num_threads() &&
         2 * conv.tiles() * kProducts <= results * 9;
}

bool is_one(at::IntArrayRef values) {
  return std::all_of(values.begin(), values.end(), [](int64_t n) { return n == 1; });
}

// Memory for the matrices of one part at a time.
class Scratch {
 public:
  Scratch(const TiledConvolution& conv, int64_t most_tiles)
      : tiles(most_tiles, conv.in_channels),
        products(most_tiles, conv.out_channels),
        made_(tiles.size()),
        sums_(products.size()) {}

  int16_t* made() { return made_.first(); }
  int32_t* sums() { return sums_.first(); }

  const Matrices tiles;
  const Matrices products;

 private:
  Lines<int16_t> made_;
  Lines<int32_t> sums_;
};

struct Operands {
  const PaddedPixels& pixels;
  const int16_t* weight;
  PairEpilogue epilogue;
  const float* other;  // of the result's shape, or null
  float* result;
};

void finish_tile(const TiledConvolution& conv, const Tile& tile, const int32_t* sums,
                 int64_t stride, const Operands& of, float* outside) {
  float* results[kResults * kResults];
  const float* others[kResults * kResults];
  for (int64_t i = 0; i < kResults; ++i) {
    for (int64_t j = 0; j < kResults; ++j) {
      const int64_t y = tile.top + i, x = tile.left + j;
      const int64_t row = tile.image * conv.out_height() + y;
      const bool inside = y < conv.out_height() && x < conv.out_width();
      const int64_t first = (row * conv.out_width() + x) * conv.out_channels;
      results[i * kResults + j] = inside ? of.result + first : outside;
      if (of.other == nullptr) continue;
      others[i * kResults + j] = inside ? of.other + first : outside;
    }
  }
  finish_tile_pixels(sums, stride, conv.out_channels, of.epilogue,
                     of.other == nullptr ? nullptr : others, results);
}

// A nested at::parallel_for runs on its own thread.
void compute(const TiledConvolution& conv, const Operands& of, Part part,
             Scratch& scratch) {
  const Matrices& tiles = scratch.tiles;
  const Matrices& products = scratch.products;
  int16_t* const made = scratch.made();
  int32_t* const sums = scratch.sums();
  at::parallel_for(0, part.count, kStepGrain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Tile tile(conv, part.first + row);
      const int16_t* const first = of.pixels.image(tile.image) +
                                   tile.top * of.pixels.row +
                                   tile.left * of.pixels.pixel;
      transform_tile_pixels({first, of.pixels.row, of.pixels.pixel}, conv.in_channels,
                            tiles.stride, made + row * tiles.row_stride);
    }
  });
  const int64_t panels = conv.out_channels / kPairPanel;
  at::parallel_for(0, kProducts * panels, kStepGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t product = at / panels, column = at % panels * kPairPanel;
      multiply_pair_matrices(
          made + product * tiles.stride, tiles.row_stride, part.count,
          of.weight + at * conv.in_channels * kPairPanel, conv.in_channels / 2,
          sums + product * products.stride + column, products.row_stride);
    }
  });
  at::parallel_for(0, part.count, kStepGrain, [&](int64_t begin, int64_t end) {
    std::vector<float> outside(conv.out_channels);  // written, and not used
    for (int64_t row = begin; row < end; ++row) {
      finish_tile(conv, Tile(conv, part.first + row), sums + row * products.row_stride,
                  products.stride, of, outside.data());
    }
  });
}

}  // namespace

bool takes_pair_tiles(const Tensor& x, const Tensor& weight,
                      const ConvolutionShape& shape, Affine affine) {
  return x.dim() == 4 && weight.size(2) == 3 && weight.size(3) == 3 &&
         is_one(shape.stride) && is_one(shape.dilation) &&
         weight.size(0) % kPairPanel == 0 && weight.size(1) % kTileChannels == 0 &&
         weight.size(1) <= kMostChannels && affine.zero_point >= 0 &&
         affine.zero_point <= 255 && keeps_packed(weight) &&
         pays(tiled(x, weight.size(0), shape));
}

Tensor pack_pair_tiles(const Tensor& weight) {
  const int64_t out = weight.size(0), in = weight.size(1);
  const int64_t matrix = out * in;
  const Tensor plain = weight.contiguous();
  const auto* const from = plain.const_data_ptr<int8_t>();
  const Tensor packed =
      at::empty({kProducts, panels_of(out), in / 2, kPairPanel, 2}, at::kShort);
  auto* const to = packed.mutable_data_ptr<int16_t>();
  at::parallel_for(0, out, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t c = 0; c < in; ++c) {
        const int8_t* const taps = from + (n * in + c) * 9;
        const int64_t pair = n / kPairPanel * (in / 2) + c / 2;
        int16_t* const place = to + (pair * kPairPanel + n % kPairPanel) * 2 + c % 2;
        for (int64_t i = 0; i < kPixels; ++i) {
          int32_t column[3] = {};
          for (int64_t tap = 0; tap < 9; ++tap) {
            column[tap % 3] += kTransform[i][tap / 3] * taps[tap];
          }
          for (int64_t j = 0; j < kPixels; ++j) {
            int32_t sum = 0;
            for (int64_t tap = 0; tap < 3; ++tap) {
              sum += kTransform[j][tap] * column[tap];
            }
            place[(i * kPixels + j) * matrix] = static_cast<int16_t>(sum);
          }
        }
      }
    }
  });
  return packed;
}

Tensor pair_tile_convolution(const Tensor& x, Affine affine, const Tensor& packed,
                             const Tensor& weight_scale, const Epilogue& epilogue,
                             const ConvolutionShape& shape) {
  const TiledConvolution conv = tiled(x, weight_scale.size(0), shape);
  // Whole tiles, of which the last may reach behind the image.
  const PaddedPixels pixels(
      x, affine,
      {shape.padding[0], shape.padding[1], conv.tile_rows() * kResults + 2,
       conv.tile_columns() * kResults + 2},
      1);
  const std::vector<float> scale = scale_in_panels(weight_scale, affine.scale);
  const std::vector<float> shift = bias_in_panels(epilogue.bias, conv.out_channels);
  Tensor out =
      at::empty({conv.images, conv.out_channels, conv.out_height(), conv.out_width()},
                at::TensorOptions(at::kFloat), at::MemoryFormat::ChannelsLast);
  const Operands of{pixels,
                    packed.const_data_ptr<int16_t>(),
                    {scale.data(), shift.data(), epilogue.relu},
                    epilogue.added(),
                    out.mutable_data_ptr<float>()};
  in_parts<Scratch>(conv, kMostTiles, [&](Part part, Scratch& scratch) {
    compute(conv, of, part, scratch);
  });
  return out;
}

}  // namespace xpurt
