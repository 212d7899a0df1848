// Dot products of a row of activations and rows of a weight in 4 bits.
#pragma once

#include <cstdint>
#include <vector>

namespace xpurt {

// Note [Dot products in 4 bits]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The bytes of a group are read as integers of 32 bits. One shift and one mask make a
// vector of the lowest nibbles of all of them, the next shift one of the next nibbles,
// and so on. The elements of such a vector are 8 apart, so the activations are brought
// into the same order once for all rows. Each group adds a vector, times the group's
// scale, to the sums, which become one number at the end of the row.
//
// Nibbles that were widened from bytes, with a sum per group, took 1.6 times as long
// with 64 inputs in a group, and 4.5 times with 32 (a row of 768 inputs and 50257
// outputs; one thread of an AMD EPYC with AVX-512, GCC 12.2, 2026-11-26).

// Rows of float32 in the order of the nibbles, and the sums of their groups.
class Int4Activations {
 public:
  // group_size: in inputs, a multiple of 16 that divides `columns`.
  Int4Activations(const float* x, int64_t rows, int64_t columns, int64_t group_size);

  // Row `row` times a row of a weight, as in `Int4Weight`.
  float dot(int64_t row, const uint8_t* weight, const float* scale,
            const float* minimum) const;

 private:
  int64_t columns_;
  int64_t group_size_;
  int64_t lanes_;  // integers in a vector
  std::vector<float> values_;
  std::vector<float> sums_;
};

}  // namespace xpurt
