// Products of CPU tensors with weights in blocks.
#pragma once

#include <ATen/core/Tensor.h>

#include "blocks/block_weight.h"

namespace xpurt {

// Note [Products with few rows]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A language model that writes token by token multiplies one row of activations with
// each weight, and reads every weight once: the time is that of reading memory. So few
// rows are multiplied with the weights as they are stored: see
// Note [Activations in 16 bits]. With more rows, and with activations that no 16 bits
// hold, the weights are unpacked block by block, each followed by PyTorch's product: in
// bfloat16 if the activations are in it and the processor multiplies it, else in
// float32.
//
// PyTorch's own ops were measured first: _weight_int8pack_mm and
// _weight_int4pack_mm_for_cpu take 2.0 and 4.2 ms in float32 for a row of 768 and 3072
// outputs, where the product in float32 takes 0.19 ms (one thread of an AMD EPYC with
// AVX-512, 2026-11-26, PyTorch 2.13); they are meant for bfloat16.

// x: (..., columns) in float32, bfloat16 or float16; bias: (rows), or none. Returns
// (..., rows) in the type of x.
at::Tensor block_product(const at::Tensor& x, const BlockWeight& weight,
                         const std::optional<at::Tensor>& bias);

// The values, (rows, columns) in float32, bfloat16 or float16.
at::Tensor values_of_blocks(const BlockWeight& weight, at::ScalarType type);

}  // namespace xpurt
