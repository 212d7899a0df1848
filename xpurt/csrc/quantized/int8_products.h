// Products and convolutions of CPU tensors in int8.
#pragma once

#include "quantized/layer.h"

namespace xpurt {

// Note [Exact integer products]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Activations have 8 bits without a sign, weights 8 bits with one, and sums are int32.
// Processors with VNNI or AMX have instructions for that. On others oneDNN adds pairs
// of products in 16 bits, which saturate. A small product finds that out at the first
// call; there pair_products.h computes the layers, and what it does not, as
// convolutions in groups, is computed by composites.h: the same integers, as float32.

// Raises ValueError for wrong shapes and types. The result has the type of `x`.
at::Tensor int8_linear(const at::Tensor& x, const Int8Weight& weight,
                       const std::optional<at::Tensor>& bias,
                       const StaticActivations& activations);

// Activations without a known scale have one for the whole tensor. The result is in
// channels_last. What is added has the shape and the type of the result.
at::Tensor int8_convolution(const at::Tensor& x, const Int8Weight& weight,
                            const Epilogue& epilogue,
                            const StaticActivations& activations,
                            const ConvolutionShape& shape);

}  // namespace xpurt
