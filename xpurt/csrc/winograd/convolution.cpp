#include "winograd/convolution.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>

#include "winograd/transforms.h"

namespace xpurt {
namespace {

constexpr int64_t kGrain = 8;  // tiles; panels
constexpr int64_t kLine = 16;  // floats

int64_t divide_up(int64_t number, int64_t by) {
  return (number + by - 1) / by;
}

int64_t number_of_parts(const Kernels& kernels, const TiledConvolution& conv) {
  const int64_t channels = conv.in_channels + conv.out_channels;
  const int64_t most =
      std::max(kernels.least_part, kernels.part_floats / (kProducts * channels));
  const int64_t parts = divide_up(conv.tiles(), most);
  const int64_t threads = at::get_num_threads();
  // So that no thread has one part more than others.
  return parts < threads ? parts : divide_up(parts, threads) * threads;
}

// Memory for the matrices of one part at a time: new memory per part would be mapped
// and cleared by the system each time.
class Scratch {
 public:
  Scratch(const TiledConvolution& conv, int64_t most_tiles)
      : tiles(most_tiles, conv.in_channels),
        products(most_tiles, conv.out_channels),
        memory_(std::make_unique_for_overwrite<Line[]>(
            divide_up(tiles.size() + products.size(), kLine))) {}

  float* made() { return memory_[0].floats; }
  float* multiplied() { return made() + tiles.size(); }

  const Matrices tiles;
  const Matrices products;

 private:
  struct alignas(64) Line {
    float floats[kLine];
  };

  std::unique_ptr<Line[]> memory_;
};

struct Part {
  int64_t first;
  int64_t count;
};

// A nested at::parallel_for runs on its own thread.
void compute(const Kernels& kernels, const TiledConvolution& conv, const float* input,
             const float* weight, const Epilogue& epilogue, float* result, Part part,
             Scratch& scratch) {
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
                          const Epilogue& epilogue, float* result) {
  const int64_t parts = number_of_parts(kernels, conv);
  const auto run = [&](int64_t begin, int64_t end) {
    Scratch scratch(conv, divide_up(conv.tiles(), parts));
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * conv.tiles() / parts;
      const int64_t last = (part + 1) * conv.tiles() / parts;
      compute(kernels, conv, input, weight, epilogue, result, {first, last - first},
              scratch);
    }
  };
  if (parts < at::get_num_threads()) {
    run(0, parts);
  } else {
    at::parallel_for(0, parts, 1, run);
  }
}

}  // namespace xpurt
