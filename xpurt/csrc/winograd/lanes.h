// The kernels, with LANES adjacent channels in a register, of which MOST_ROWS rows of
// sums fit beside each other. Each file that includes it defines these, the
// INSTRUCTIONS that its functions are compiled for, whatever the rest is compiled for,
// and the KERNELS.
#include <array>
#include <cstdint>
#include <utility>

#include "winograd/kernels.h"

#if defined(__clang__)
#define OF_LANES __attribute__((target(INSTRUCTIONS)))
#else
#define OF_LANES \
  __attribute__((target(INSTRUCTIONS), optimize("O3", "fp-contract=fast")))
#endif
#define INLINE_OF_LANES OF_LANES __attribute__((always_inline)) inline

namespace xpurt {
namespace NAMESPACE {

constexpr int64_t kLanes = LANES;
constexpr int64_t kMostRows = MOST_ROWS;
constexpr int64_t kPanel = 2 * kLanes;
static_assert(kChannels % kLanes == 0);

using Lanes = float __attribute__((vector_size(4 * LANES)));

// The same at any address, over floats.
using LanesAnywhere =
    float __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE_OF_LANES void load(Lanes& lanes, const float* from) {
  lanes = *reinterpret_cast<const LanesAnywhere*>(from);
}

INLINE_OF_LANES void store(float* to, const Lanes& lanes) {
  *reinterpret_cast<LanesAnywhere*>(to) = lanes;
}

// The interpolation points are 0, A, -A, B, -B and infinity.
constexpr float kA = 0.625f;
constexpr float kB = 1.5f;
constexpr float kA2 = kA * kA;
constexpr float kB2 = kB * kB;

// d: six pixels, `step` apart.
INLINE_OF_LANES void transform_pixels(Lanes* d, int64_t step) {
  const Lanes d0 = d[0], d1 = d[step], d2 = d[2 * step];
  const Lanes d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  const Lanes even_a = d4 - kB2 * d2, odd_a = kA * (d3 - kB2 * d1);
  const Lanes even_b = d4 - kA2 * d2, odd_b = kB * (d3 - kA2 * d1);
  d[0] = kA2 * kB2 * d0 - (kA2 + kB2) * d2 + d4;
  d[step] = even_a + odd_a;
  d[2 * step] = even_a - odd_a;
  d[3 * step] = even_b + odd_b;
  d[4 * step] = even_b - odd_b;
  d[5 * step] = kA2 * kB2 * d1 - (kA2 + kB2) * d3 + d5;
}

// m: six products, `step` apart, of which four results are made.
INLINE_OF_LANES void transform_products(Lanes* m, int64_t step) {
  const Lanes m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
  const Lanes sum_a = m1 + m2, difference_a = kA * (m1 - m2);
  const Lanes sum_b = m3 + m4, difference_b = kB * (m3 - m4);
  m[0] = m[0] + sum_a + sum_b;
  m[step] = difference_a + difference_b;
  m[2 * step] = kA2 * sum_a + kB2 * sum_b;
  m[3 * step] = kA2 * difference_a + kB2 * difference_b + m[5 * step];
}

template <typename Float>
INLINE_OF_LANES Float* place_of(const Pixel<Float>& pixel, int64_t block,
                                int64_t inside) {
  return pixel.first + block * pixel.block + inside;
}

static OF_LANES void transform_tile(const Pixel<const float>* pixels, Channels channels,
                                    int64_t stride, float* made) {
  for (int64_t c = 0; c < channels.number; c += kLanes) {
    const int64_t block = c / channels.adjacent, inside = c % channels.adjacent;
    Lanes d[kProducts];
    for (int64_t i = 0; i < kPixels; ++i) {
      for (int64_t j = 0; j < kPixels; ++j) {
        load(d[i * kPixels + j], place_of(pixels[i * kPixels + j], block, inside));
      }
      transform_pixels(d + i * kPixels, 1);
    }
    for (int64_t j = 0; j < kPixels; ++j) {
      transform_pixels(d + j, kPixels);
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        store(made + product * stride + c, d[product]);
      }
    }
  }
}

template <int64_t rows>
static OF_LANES void multiply_rows(const float* left, int64_t left_stride,
                                   const float* panel, int64_t inner, float* product,
                                   int64_t product_stride, Added added) {
  Lanes low[rows], high[rows];
#pragma GCC unroll 12
  for (int64_t i = 0; i < rows; ++i) low[i] = high[i] = Lanes{};
  for (int64_t k = 0; k < inner; ++k) {
    Lanes panel_low, panel_high;
    load(panel_low, panel + k * kPanel);
    load(panel_high, panel + k * kPanel + kLanes);
    if constexpr (AHEAD > 0) __builtin_prefetch(panel + (k + AHEAD) * kPanel);
#pragma GCC unroll 12
    for (int64_t i = 0; i < rows; ++i) {
      const float number = left[i * left_stride + k];
      low[i] += number * panel_low;
      high[i] += number * panel_high;
    }
  }
#pragma GCC unroll 12
  for (int64_t i = 0; i < rows; ++i) {
    float* const to = product + i * product_stride;
    if (added.first != nullptr) {
      Lanes other;
      load(other, added.first + i * added.stride);
      low[i] += other;
      load(other, added.first + i * added.stride + kLanes);
      high[i] += other;
    }
    store(to, low[i]);
    store(to + kLanes, high[i]);
  }
}

using MultiplyRows = void (*)(const float*, int64_t, const float*, int64_t, float*,
                              int64_t, Added);

template <int64_t... before>
constexpr std::array<MultiplyRows, sizeof...(before)> functions(
    std::integer_sequence<int64_t, before...>) {
  return {&multiply_rows<before + 1>...};
}

constexpr auto kMultiplyRows =
    functions(std::make_integer_sequence<int64_t, kMostRows>());

// Into the second cache, from memory that is too far away for the loop above.
inline void fetch(const float* begin, const float* end) {
  constexpr int64_t kLine = 16;  // floats
  for (const float* at = begin; at < end; at += kLine) __builtin_prefetch(at, 0, 2);
}

static void multiply_panel(const float* left, int64_t left_stride, int64_t rows,
                           const float* panel, int64_t inner, const float* next,
                           float* product, int64_t product_stride, Added added) {
  // Groups of about equal size: a group of few rows reads the panel for little.
  const int64_t groups = (rows + kMostRows - 1) / kMostRows;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t begin = group * rows / groups;
    const int64_t end = (group + 1) * rows / groups;
    fetch(next + group * inner / groups * kPanel,
          next + (group + 1) * inner / groups * kPanel);
    kMultiplyRows[end - begin - 1](left + begin * left_stride, left_stride, panel,
                                   inner, product + begin * product_stride,
                                   product_stride, added.after(begin));
  }
}

// x times a quotient of polynomials of x squared, with errors of 2e-9 beside those of
// float, up to where erf is 1 in float (least squares, weighted until the largest
// relative errors were about equal).
INLINE_OF_LANES Lanes error_function(const Lanes& x) {
  constexpr float kOne = 3.92f;
  const Lanes last = Lanes{} + kOne, one = Lanes{} + 1.0f;
  const Lanes near = x > last ? last : x < -last ? -last : x;  // keeps NaN
  const Lanes t = near * near;
  Lanes p = t * -1.28001076e-8f + 4.60929415e-6f;
  p = p * t + 3.76761180e-4f;
  p = p * t + 3.83862789e-3f;
  p = p * t + 5.42440314e-2f;
  p = p * t + 1.85135256e-1f;
  p = p * t + 1.12837917f;
  Lanes q = t * 6.23997457e-5f + 1.30152894e-3f;
  q = q * t + 1.54300664e-2f;
  q = q * t + 1.13873793e-1f;
  q = q * t + 4.97405296e-1f;
  q = q * t + 1.0f;
  const Lanes inside = near * p / q;
  return near == last ? one : near == -last ? -one : inside;
}

INLINE_OF_LANES Lanes after_sum(AfterSum after, const Lanes& sum) {
  if (after == AfterSum::relu) return sum < 0 ? Lanes{} : sum;
  if (after == AfterSum::none) return sum;
  const Lanes half = 0.5f * sum;
  return half + half * error_function(0.707106781f * sum);
}

static OF_LANES void finish_row(const float* bias, AfterSum after, float* values,
                                int64_t size) {
  for (int64_t n = 0; n < size; n += kLanes) {
    Lanes sum, other{};
    load(sum, values + n);
    if (bias != nullptr) load(other, bias + n);
    store(values + n, after_sum(after, sum + other));
  }
}

static OF_LANES void finish_tile(const float* products, int64_t stride,
                                 Channels channels, const Epilogue& epilogue,
                                 const Pixel<const float>* others,
                                 const Pixel<float>* results) {
  for (int64_t c = 0; c < channels.number; c += kLanes) {
    const int64_t block = c / channels.adjacent, inside = c % channels.adjacent;
    Lanes m[kProducts];
    for (int64_t j = 0; j < kPixels; ++j) {
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        load(m[product], products + product * stride + c);
      }
      transform_products(m + j, kPixels);
    }
    Lanes bias{};
    if (epilogue.bias != nullptr) load(bias, epilogue.bias + c);
    for (int64_t i = 0; i < kResults; ++i) {
      transform_products(m + i * kPixels, 1);
      for (int64_t j = 0; j < kResults; ++j) {
        Lanes value = m[i * kPixels + j] + bias;
        if (epilogue.other != nullptr) {
          Lanes other;
          load(other, place_of(others[i * kResults + j], block, inside));
          value += other;
        }
        if (epilogue.relu) value = value < 0 ? Lanes{} : value;
        store(place_of(results[i * kResults + j], block, inside), value);
      }
    }
  }
}

}  // namespace NAMESPACE

const Kernels KERNELS{LANES,
                      2 * LANES,
                      PART_FLOATS,
                      LEAST_PART,
                      &NAMESPACE::transform_tile,
                      &NAMESPACE::multiply_panel,
                      &NAMESPACE::finish_row,
                      &NAMESPACE::finish_tile};

}  // namespace xpurt

#undef LANES
#undef MOST_ROWS
#undef AHEAD
#undef PART_FLOATS
#undef LEAST_PART
#undef INSTRUCTIONS
#undef KERNELS
#undef NAMESPACE
#undef OF_LANES
#undef INLINE_OF_LANES
