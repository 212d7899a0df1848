// Products with a panel of a packed weight, and what follows them, part of lanes.h.
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
