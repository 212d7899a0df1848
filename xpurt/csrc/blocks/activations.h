// Activations as integers of 16 bits.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

#include "blocks/block_weight.h"

namespace xpurt {

constexpr int64_t kPart = 32;  // elements with one scale

// Adjacent parts with one scale: with one of the weight, too, their integers are added.
inline int64_t parts_together(const BlockWeight& weight) {
  return weight.format == BlockFormat::int4_groups && weight.group % (2 * kPart) == 0
             ? 2
             : 1;
}

// Whether a row is whole blocks of eight groups of 64.
inline bool has_eight_groups(const BlockWeight& weight) {
  return weight.format == BlockFormat::int4_groups && weight.group == 64 &&
         weight.columns % (8 * 64) == 0;
}

// Of a part: an activation is about scale * word; and an eighth of the sum of these.
struct PartScale {
  float scale;
  float sum;
};

// Note [Activations in 16 bits]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A token's product with a weight should take no longer than reading the weight. The
// widening of each weight to float32 takes longer. As integers of 16 bits, 32 weights
// take two multiplications that add pairs, and the sums are exact. So each 32
// activations become integers with a scale of their own: the largest becomes 32767. An
// activation is off by at most 2^-16 of the largest of its part, where bfloat16 is off
// by 2^-9 of its own size and the 8 bits of llama.cpp by 2^-8 of the largest. What is
// off in float32 is multiplied as a second row, and added.
//
// One thread of an AMD EPYC of Zen 4, weights of Q4_1 that no cache holds (2026-12-01):
// 16.1 GB/s, where a loop that only reads them has 18.6. With a float16 scale and
// minimum converted one by one it was 12.7, with AVX-512's vpdpwssd no more than 13.
class BlockActivations {
 public:
  // x: (rows, columns) in float32, float16 or bfloat16, contiguous.
  BlockActivations(const void* x, c10::ScalarType type, int64_t rows,
                   const BlockWeight& weight);

  // Whether all are such integers: none is infinite or NaN, and no part has only values
  // that are too small for a scale.
  bool all_fit() const { return all_fit_; }

  // Rows of integers: two for each in float32, else one.
  static int64_t rows_of(c10::ScalarType type, int64_t rows) {
    return type == c10::ScalarType::Float ? 2 * rows : rows;
  }
  int64_t rows() const { return rows_; }
  int64_t parts() const { return parts_; }  // of a row
  // In the order of the weight's parts, with zeros after the last column.
  const int16_t* words(int64_t row) const {
    return words_.data() + row * parts_ * kPart;
  }
  // See unit_bytes in block_kernels.h.
  const uint8_t* units(int64_t row) const { return units_.data() + row * unit_bytes_; }
  const PartScale* scales(int64_t row) const { return scales_.data() + row * parts_; }

 private:
  bool add_row(const float* values, int64_t row);
  // What the integers of a row leave.
  void subtract_row(float* values, int64_t row) const;

  int64_t rows_;
  int64_t parts_;
  int64_t together_;
  bool all_fit_ = false;
  std::vector<int16_t> words_;
  int64_t unit_bytes_ = 0;
  std::vector<uint8_t> units_;
  std::vector<PartScale> scales_;
};

}  // namespace xpurt
