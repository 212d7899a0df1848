#include "winograd/convolution.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "lanes/lines.h"
#include "winograd/parts.h"
#include "winograd/transforms.h"

namespace xpurt {
namespace {

constexpr int64_t kGrain = 8;  // tiles; panels

int64_t most_tiles(const Kernels& kernels, const TiledConvolution& conv) {
  const int64_t channels = conv.in_channels + conv.out_channels;
  return std::max(kernels.least_part, kernels.part_floats / (kProducts * channels));
}

// Memory for the matrices of one part at a time.
class Scratch {
 public:
  Scratch(const TiledConvolution& conv, int64_t most_tiles)
      : tiles(most_tiles, conv.in_channels),
        products(most_tiles, conv.out_channels),
        made_(tiles.size()),
        multiplied_(products.size()) {}

  float* made() { return made_.first(); }
  float* multiplied() { return multiplied_.first(); }

  const Matrices tiles;
  const Matrices products;

 private:
  Lines<float> made_;
  Lines<float> multiplied_;
};

// A nested at::parallel_for runs on its own thread.
void compute(const Kernels& kernels, const TiledConvolution& conv, const float* input,
             const float* weight, const TileEpilogue& epilogue, float* result,
             Part part, Scratch& scratch) {
  const Matrices& tiles = scratch.tiles;
  const Matrices& products = scratch.products;
  float* const made = scratch.made();
  float* const multiplied = scratch.multiplied();
  at::parallel_for(0, part.count, kGrain, [&](int64_t begin, int64_t end) {
    transform_input(kernels, conv, input, part.first + begin, end - begin, tiles,
                    made + begin * tiles.row_stride);
  });
  const int64_t panels = conv.out_channels / kernels.panel;
  at::parallel_for(0, kProducts * panels, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t product = at / panels;
      const int64_t column = at % panels * kernels.panel;
      const float* panel = weight + at * conv.in_channels * kernels.panel;
      const float* next = panel + conv.in_channels * kernels.panel;
      kernels.multiply_panel(made + product * tiles.stride, tiles.row_stride,
                             part.count, panel, conv.in_channels, next,
                             multiplied + product * products.stride + column,
                             products.row_stride, {});
    }
  });
  at::parallel_for(0, part.count, kGrain, [&](int64_t begin, int64_t end) {
    transform_output(kernels, conv, multiplied + begin * products.row_stride, products,
                     part.first + begin, end - begin, epilogue, result);
  });
}

}  // namespace

void winograd_convolution(const Kernels& kernels, const TiledConvolution& conv,
                          const float* input, const float* weight,
                          const TileEpilogue& epilogue, float* result) {
  in_parts<Scratch>(conv, most_tiles(kernels, conv), [&](Part part, Scratch& scratch) {
    compute(kernels, conv, input, weight, epilogue, result, part, scratch);
  });
}

}  // namespace xpurt
