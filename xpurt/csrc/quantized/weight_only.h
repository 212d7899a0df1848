// Products of CPU tensors with weights in 8 or 4 bits, and activations as they are.
#pragma once

#include "quantized/layer.h"

namespace xpurt {

// Note [Products with few rows]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A language model that writes token by token multiplies one row of activations with
// each weight, and reads every weight once: the time is that of reading memory. So up
// to kFewRows rows are multiplied with the weights as they are stored. With more rows
// the weights become float32 block by block, each followed by PyTorch's product.
//
// PyTorch's own ops were measured first: _weight_int8pack_mm and
// _weight_int4pack_mm_for_cpu take 2.0 and 4.2 ms in float32 for a row of 768 and 3072
// outputs, where the product in float32 takes 0.19 ms (one thread of an AMD EPYC with
// AVX-512, 2026-11-26, PyTorch 2.13); they are meant for bfloat16.

at::Tensor int8_weight_linear(const at::Tensor& x, const Int8Weight& weight,
                              const std::optional<at::Tensor>& bias);
at::Tensor int4_weight_linear(const at::Tensor& x, const Int4Weight& weight,
                              const std::optional<at::Tensor>& bias);

}  // namespace xpurt
