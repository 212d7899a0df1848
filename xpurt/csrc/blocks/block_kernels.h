// The loops over weights in blocks, compiled for each instruction set.
#pragma once

#include "blocks/activations.h"

namespace xpurt {

struct BlockKernels {
  // Activations as integers with one scale; false if they have none. size: whole parts.
  bool (*to_words)(const float* x, int64_t size, int16_t* words, PartScale& scale);
  // For 64 words with one scale: 16 numbers, see wide_rows.h. Null: not wanted.
  void (*write_middles)(const int16_t* words, int32_t* middles);
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
