#include "quantized/int4_dot.h"

#include <cstring>

#include "quantized/vectors.h"

namespace xpurt {
namespace {

constexpr int64_t kNibbles = 8;  // of an integer
constexpr auto kEights = static_cast<int32_t>(0x88888888U);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the order of nibbles is that of a processor with the lowest byte first");

template <int lanes>
struct Vectors {
  using Integers [[gnu::vector_size(4 * lanes)]] = int32_t;
  using Floats [[gnu::vector_size(4 * lanes)]] = float;
};

// The sum of x * (value * scale + minimum), as (value - 8) * scale + (minimum + 8 *
// scale): a weight is about as often negative as positive, so the second part is small.
// As value * scale + minimum, two large sums of positive x would cancel. `bytes`: of a
// group, a multiple of those of a vector.
template <int lanes>
inline float dot_of(const float* __restrict x, const float* __restrict sums,
                    const uint8_t* __restrict weight, const float* __restrict scale,
                    const float* __restrict minimum, int64_t groups, int64_t bytes) {
  using Integers = typename Vectors<lanes>::Integers;
  using Floats = typename Vectors<lanes>::Floats;
  Floats total = {};
  for (int64_t g = 0; g < groups; ++g) {
    Floats even = {};
    Floats odd = {};
    for (int64_t k = 0; k < bytes; k += sizeof(Integers)) {
      Integers packed;
      std::memcpy(&packed, weight + g * bytes + k, sizeof(packed));
      packed ^= kEights;
      const float* const first = x + 2 * (g * bytes + k);
#pragma GCC unroll 8
      for (int64_t n = 0; n < kNibbles; ++n) {
        Floats values;
        std::memcpy(&values, first + n * lanes, sizeof(values));
        // Shifted as a signed number: one that was 0..15 is -8..7 now.
        const Integers nibbles = packed << static_cast<int32_t>(28 - 4 * n) >> 28;
        (n % 2 ? odd : even) += values * __builtin_convertvector(nibbles, Floats);
      }
    }
    total += scale[g] * (even + odd);
  }
  float sum = 0;
  for (int lane = 0; lane < lanes; ++lane) sum += total[lane];
  for (int64_t g = 0; g < groups; ++g) sum += (minimum[g] + 8 * scale[g]) * sums[g];
  return sum;
}

IN_ANY_ORDER float dot_by_8(const float* x, const float* sums, const uint8_t* weight,
                            const float* scale, const float* minimum, int64_t groups,
                            int64_t bytes) {
  return dot_of<8>(x, sums, weight, scale, minimum, groups, bytes);
}

IN_ANY_ORDER float dot_by_4(const float* x, const float* sums, const uint8_t* weight,
                            const float* scale, const float* minimum, int64_t groups,
                            int64_t bytes) {
  return dot_of<4>(x, sums, weight, scale, minimum, groups, bytes);
}

IN_ANY_ORDER float dot_by_2(const float* x, const float* sums, const uint8_t* weight,
                            const float* scale, const float* minimum, int64_t groups,
                            int64_t bytes) {
  return dot_of<2>(x, sums, weight, scale, minimum, groups, bytes);
}

// The most integers of a vector of which a group is a multiple.
int64_t lanes_of(int64_t group_size) {
  return group_size % 64 == 0 ? 8 : group_size % 32 == 0 ? 4 : 2;
}

}  // namespace

Int4Activations::Int4Activations(const float* x, int64_t rows, int64_t columns,
                                 int64_t group_size)
    : columns_(columns), group_size_(group_size), lanes_(lanes_of(group_size)) {
  const int64_t half = group_size / 2;
  const int64_t block = kNibbles * lanes_;  // elements of a vector of integers
  values_.reserve(rows * columns);
  sums_.reserve(rows * columns / group_size);
  for (int64_t begin = 0; begin < rows * columns; begin += group_size) {
    const float* const group = x + begin;
    float sum = 0;
    for (int64_t k = 0; k < group_size; ++k) sum += group[k];
    sums_.push_back(sum);
    // Byte b has the elements b and b + half, and is byte b % 4 of integer b / 4.
    for (int64_t k = 0; k < half; k += block / 2) {
      for (int64_t n = 0; n < kNibbles; ++n) {
        for (int64_t lane = 0; lane < lanes_; ++lane) {
          values_.push_back(group[(n % 2) * half + k + 4 * lane + n / 2]);
        }
      }
    }
  }
}

float Int4Activations::dot(int64_t row, const uint8_t* weight, const float* scale,
                           const float* minimum) const {
  const int64_t groups = columns_ / group_size_;
  const auto of_width = lanes_ == 8 ? dot_by_8 : lanes_ == 4 ? dot_by_4 : dot_by_2;
  return of_width(values_.data() + row * columns_, sums_.data() + row * groups, weight,
                  scale, minimum, groups, group_size_ / 2);
}

}  // namespace xpurt
