// The tiles of a convolution in parts.
#pragma once

#include <ATen/Parallel.h>

#include "lanes/lines.h"
#include "winograd/tiles.h"

namespace xpurt {

struct Part {
  int64_t first;
  int64_t count;
};

// compute(part, scratch) for parts of at most `most_tiles` tiles. A thread makes one
// Scratch(conv, tiles) for its parts: new memory per part would be mapped and cleared
// by the system each time. Where there are fewer parts than threads, they are computed
// one after the other, for the threads to divide.
template <typename Scratch, typename Compute>
void in_parts(const TiledConvolution& conv, int64_t most_tiles,
              const Compute& compute) {
  const int64_t fewest = divide_up(conv.tiles(), most_tiles);
  const int64_t threads = at::get_num_threads();
  const bool divided = fewest < threads;
  // So that no thread has one part more than others.
  const int64_t parts = divided ? fewest : divide_up(fewest, threads) * threads;
  const auto run = [&](int64_t begin, int64_t end) {
    Scratch scratch(conv, divide_up(conv.tiles(), parts));
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * conv.tiles() / parts;
      const int64_t last = (part + 1) * conv.tiles() / parts;
      compute(Part{first, last - first}, scratch);
    }
  };
  if (divided) {
    run(0, parts);
  } else {
    at::parallel_for(0, parts, 1, run);
  }
}

}  // namespace xpurt
