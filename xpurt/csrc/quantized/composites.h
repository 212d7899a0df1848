// Quantized layers in ordinary ops: on any device, without a copy to the host.
#pragma once

#include "quantized/layer.h"

namespace xpurt {

// The same numbers as the functions of int8_products.h and weight_only.h, up to the
// order of sums: integers are multiplied as float32.
at::Tensor int8_linear_composite(const at::Tensor& x, const Int8Weight& weight,
                                 const std::optional<at::Tensor>& bias,
                                 const StaticActivations& activations);
at::Tensor int8_convolution_composite(const at::Tensor& x, const Int8Weight& weight,
                                      const Epilogue& epilogue,
                                      const StaticActivations& activations,
                                      const ConvolutionShape& shape);
at::Tensor int8_weight_linear_composite(const at::Tensor& x, const Int8Weight& weight,
                                        const std::optional<at::Tensor>& bias);
at::Tensor int4_weight_linear_composite(const at::Tensor& x, const Int4Weight& weight,
                                        const std::optional<at::Tensor>& bias);

}  // namespace xpurt
