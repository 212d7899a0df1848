#include "winograd/weight.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "lanes/lines.h"
#include "winograd/parts.h"

namespace xpurt {
namespace {

constexpr int64_t kTaps = 9;
constexpr int64_t kMostPanel = 32;
// Rows of panels that are transformed before they are written: the 36 matrices are far
// apart, and their lines would share few sets of the caches.
constexpr int64_t kRowsAtOnce = 8;

}  // namespace

void transform_weight(const Kernels& kernels, const PlainWeight& weight, float* made) {
  const int64_t out = weight.out_channels, in = weight.in_channels;
  const int64_t of_output = weight.of_gradient ? kTaps : in * kTaps;
  const int64_t of_input = weight.of_gradient ? out * kTaps : kTaps;
  const int64_t panel = kernels.panel, rows = out / panel * in;
  const auto transform = [&](Part part) {
    float taps[kTaps * kMostPanel], products[kProducts * kRowsAtOnce * kMostPanel];
    for (int64_t row = part.first; row < part.first + part.count; ++row) {
      const float* const from =
          weight.first + row / in * panel * of_output + row % in * of_input;
      for (int64_t column = 0; column < panel; ++column) {
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          const int64_t to = weight.of_gradient ? kTaps - 1 - tap : tap;
          taps[to * panel + column] = from[column * of_output + tap];
        }
      }
      kernels.transform_taps(taps, kRowsAtOnce * panel,
                             products + (row - part.first) * panel);
    }
    for (int64_t product = 0; product < kProducts; ++product) {
      std::copy_n(products + product * kRowsAtOnce * panel, part.count * panel,
                  made + (product * rows + part.first) * panel);
    }
  };
  at::parallel_for(0, divide_up(rows, kRowsAtOnce), 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t first = part * kRowsAtOnce;
      transform({first, std::min(kRowsAtOnce, rows - first)});
    }
  });
}

}  // namespace xpurt
