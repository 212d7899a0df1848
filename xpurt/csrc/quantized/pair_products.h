// Products and convolutions in int8 on processors with AVX2 alone.
#pragma once

#include <optional>

#include "quantized/activations.h"
#include "quantized/layer.h"

namespace xpurt {

// Note [Products of pairs]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// AVX2 multiplies 16 integers of 16 bits by 16 others, and adds neighbours in 32 bits,
// in one instruction (vpmaddwd). It is exact for activations without their zero point,
// -255 to 255, and weights of 8 bits, and two instructions, with the sum, do as many
// multiplications as two of float32 do in 8 lanes, and twice as many. A weight stays in
// int8, in panels of 16 output channels, of which pairs of input channels are adjacent.
//
// Rejected: vpmaddubsw, of bytes, needs 3 instructions for 32 multiplications and not
// 4. With 256 inputs in the cache its loop ran at 80 G multiplications and additions
// per second where this one ran at 58 (alternated in one run beside other programs, AMD
// EPYC of Zen 3, one thread, 2026-11-30). But it adds two products in 16 bits, which
// saturate: it is exact for weights of 7 bits alone. Of weights of a normal
// distribution, 256 inputs, 64% of the groups of 4 inputs and 16 outputs have a pair
// that may saturate, too many to multiply in another way.
//
// A convolution reads images in channels last, in 16 bits, with their padding: where a
// result needs the inputs of a tap, they are adjacent. So sums stay in registers over
// all taps and channels.

// Whether this processor has AVX2, and the sum of so many products fits into 32 bits.
bool has_pair_products(int64_t products);

// Whether the inputs of a result in a row of the kernel are adjacent: they are then one
// tap, of which an odd number is filled up once and not per pixel.
bool has_adjacent_taps(const ConvolutionShape& shape);

// What pair_linear and pair_convolution read. weight: int8, (out, in, ...). adjacent:
// as of has_adjacent_taps; for a product of matrices it is the same.
at::Tensor pack_pairs(const at::Tensor& weight, bool adjacent);

// x: (rows, in) in float32; without `affine` each row has a scale of its own. Returns
// (rows, out) in float32. What is added is in the order of the result.
at::Tensor pair_linear(const at::Tensor& x, std::optional<Affine> affine,
                       const at::Tensor& packed, const at::Tensor& weight_scale,
                       const Epilogue& epilogue);

// x: (images, in, height, width) in channels last, in float32; kernel: height and
// width. Returns the result in channels last, in float32, as is what is added. Only for
// one group.
at::Tensor pair_convolution(const at::Tensor& x, Affine affine,
                            const at::Tensor& packed, const at::Tensor& weight_scale,
                            const Epilogue& epilogue, at::IntArrayRef kernel,
                            const ConvolutionShape& shape);

}  // namespace xpurt
