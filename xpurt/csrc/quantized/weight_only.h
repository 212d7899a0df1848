// Products of CPU tensors with weights in 8 or 4 bits, and activations as they are. See
// Note [Products with few rows].
#pragma once

#include "quantized/layer.h"

namespace xpurt {

at::Tensor int8_weight_linear(const at::Tensor& x, const Int8Weight& weight,
                              const std::optional<at::Tensor>& bias);
at::Tensor int4_weight_linear(const at::Tensor& x, const Int4Weight& weight,
                              const std::optional<at::Tensor>& bias);

}  // namespace xpurt
