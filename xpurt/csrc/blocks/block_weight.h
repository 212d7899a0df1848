// Weights of few bits in blocks along the inputs.
#pragma once

#include <cstdint>

namespace xpurt {

// Numbers that are not negative are those of GGUF's tensor types. Its blocks stand one
// after the other, with their scales inside:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
enum class BlockFormat : int64_t {
  int8_channels = -1,  // integers, a scale for each row
  int4_groups = -2,    // see Int4Weight in quantized/layer.h
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
};

// Elements and bytes of a block; elements is 0 if the number is not that of a format in
// blocks.
struct BlockSize {
  int64_t elements;
  int64_t bytes;
};

constexpr BlockSize block_size(BlockFormat format) {
  switch (format) {
    case BlockFormat::q4_0:
      return {32, 18};
    case BlockFormat::q4_1:
      return {32, 20};
    case BlockFormat::q5_0:
      return {32, 22};
    case BlockFormat::q5_1:
      return {32, 24};
    case BlockFormat::q8_0:
      return {32, 34};
    case BlockFormat::q4_k:
      return {256, 144};
    case BlockFormat::q5_k:
      return {256, 176};
    case BlockFormat::q6_k:
      return {256, 210};
    default:
      return {0, 0};
  }
}

// A weight (rows, columns). A row is an output channel.
struct BlockWeight {
  const uint8_t* row(int64_t n) const { return bytes + n * row_bytes; }

  BlockFormat format;
  const uint8_t* bytes;
  int64_t rows;
  int64_t columns;
  int64_t row_bytes;
  const float* scale = nullptr;    // of int8_channels and int4_groups
  const float* minimum = nullptr;  // of int4_groups
  int64_t group = 0;               // its columns
};

}  // namespace xpurt
