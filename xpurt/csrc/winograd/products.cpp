#include "winograd/products.h"

#include <array>
#include <utility>

#include "winograd/lanes.h"

namespace xpurt {
namespace {

// Rows of sums that the registers of AVX-512 hold, with a row of the panel and a
// number.
constexpr int64_t kMostRows = 12;

template <int64_t rows>
OF_LANES void multiply_rows(const float* left, int64_t left_stride, const float* panel,
                            int64_t inner, float* product, int64_t product_stride) {
  Lanes low[rows], high[rows];
#pragma GCC unroll 12
  for (int64_t i = 0; i < rows; ++i) low[i] = high[i] = Lanes{};
  for (int64_t k = 0; k < inner; ++k) {
    Lanes panel_low, panel_high;
    load(panel_low, panel + k * kPanel);
    load(panel_high, panel + k * kPanel + kLanes);
#pragma GCC unroll 12
    for (int64_t i = 0; i < rows; ++i) {
      const float number = left[i * left_stride + k];
      low[i] += number * panel_low;
      high[i] += number * panel_high;
    }
  }
#pragma GCC unroll 12
  for (int64_t i = 0; i < rows; ++i) {
    store(product + i * product_stride, low[i]);
    store(product + i * product_stride + kLanes, high[i]);
  }
}

using MultiplyRows = void (*)(const float*, int64_t, const float*, int64_t, float*,
                              int64_t);

template <int64_t... before>
constexpr std::array<MultiplyRows, sizeof...(before)> functions(
    std::integer_sequence<int64_t, before...>) {
  return {&multiply_rows<before + 1>...};
}

constexpr auto kMultiplyRows =
    functions(std::make_integer_sequence<int64_t, kMostRows>());

}  // namespace

void multiply_panel(const float* left, int64_t left_stride, int64_t rows,
                    const float* panel, int64_t inner, float* product,
                    int64_t product_stride) {
  // Groups of about equal size: a group of few rows reads the panel for little.
  const int64_t groups = (rows + kMostRows - 1) / kMostRows;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t begin = group * rows / groups;
    const int64_t end = (group + 1) * rows / groups;
    kMultiplyRows[end - begin - 1](left + begin * left_stride, left_stride, panel,
                                   inner, product + begin * product_stride,
                                   product_stride);
  }
}

}  // namespace xpurt
