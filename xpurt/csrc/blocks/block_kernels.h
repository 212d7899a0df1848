// The loops over weights in blocks, compiled for each instruction set.
#pragma once

#include "blocks/activations.h"

namespace xpurt {

// (rows, columns) times a weight (results, columns), all bits of bfloat16.
struct Bfloat16Product {
  const uint16_t* weight;
  const uint16_t* x;
  int64_t results;
  int64_t columns;
  int64_t rows;
};

struct BlockKernels {
  // Activations as integers with one scale; false if they have none. size: whole parts.
  bool (*to_words)(const float* x, int64_t size, int16_t* words, PartScale& scale);
  // Bytes of a row of activations as bytes, 0 if the weight isn't multiplied by them;
  // and what writes them, see wide_rows.h. Null: none is.
  int64_t (*unit_bytes)(const BlockWeight& weight) = nullptr;
  void (*write_units)(const BlockWeight& weight, const int16_t* words,
                      const PartScale* scales, uint8_t* out) = nullptr;
  // Of begin..end of the results: out[m * results + n]. Null: no such instructions.
  void (*multiply_bfloat16)(const Bfloat16Product& product, int64_t begin, int64_t end,
                            float* out) = nullptr;
  // The products of all rows of activations and rows begin..end of the weight:
  // out[m * weight.rows + n].
  void (*multiply)(const BlockWeight& weight, const BlockActivations& x, int64_t begin,
                   int64_t end, float* out);
  // The values of a row, in float32 or rounded to bfloat16.
  void (*to_float)(const BlockWeight& weight, int64_t row, float* out);
  void (*to_bfloat16)(const BlockWeight& weight, int64_t row, uint16_t* out);
};

extern const BlockKernels kAnyBlockKernels;
extern const BlockKernels kAvx2BlockKernels;
extern const BlockKernels kAvx512BlockKernels;

// Those for the processor, and for what ATEN_CPU_CAPABILITY allows.
const BlockKernels& block_kernels();

}  // namespace xpurt
