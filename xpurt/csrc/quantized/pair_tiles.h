// Convolutions of 3x3 in integers by fewer multiplications.
#pragma once

#include <ATen/core/Tensor.h>

#include "quantized/activations.h"
#include "quantized/layer.h"

namespace xpurt {

// Note [Winograd in integers]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// F(4x4, 3x3) computes a tile of 4x4 results from 6x6 pixels by 36 multiplications per
// pair of channels instead of 144 (Winograd, 1980; Lavin and Gray, 2015; see also Note
// [Winograd on the processor]). With integers it can be exact, so results are those of
// pair_convolution, bit for bit. The interpolation points 0, 1, -1, 2, -1/2 and
// infinity serve this. Their transforms of pixels, weights and products, in one
// dimension, are
//
//     2  3 -4 -3  2  0      15  0  0
//     0 -2 -5 -1  2  0      -5 -5 -5      1  1  1  1  8  0
//     0  2  1 -5  2  0       5 -5  5      0  1 -1  2 -4  0
//     0 -1 -2  1  2  0       1  2  4      0  1  1  4  2  0
//     0  2 -1 -2  1  0      -4  2 -1      0  1 -1  8 -1  1
//     0  2  3 -4 -3  2       0  0 15
//
// and make 30 times the results, in two dimensions 900 times.
// - A row of the first has positive numbers of at most 7 in total, and negative ones.
//   In two dimensions these are 98. Pixels of 8 bits are in a range of 255 that
//   includes 0, so transformed ones are at most 24,990 and fit into 16 bits.
// - A row of the second has magnitudes of at most 15 in total, so transformed weights
//   are at most 15 * 15 * 128 = 28,800.
// - Sums wrap around at 32 bits. A product by the inverse of 225 leaves 4 times the
//   results, modulo 2^32: exact for results below 2^29, which is 1,827 channels.
// With the points of Lavin and Gray, 0, 1, -1, 2, -2, the sums would be 64 times the
// results, and exact below 2^25 alone.
//
// A weight in int16 is 8 times as large as one in int8.
//
// Of the layers of a ResNet-18 these took 0.38 to 0.49 of the time of pair_convolution
// (AMD EPYC of Zen 3, AVX2, one thread, 8 images of 224x224, processor time beside
// other programs, 2026-11-30).

// Whether a convolution takes such tiles, and less time by them. x: (images, in,
// height, width); weight: (out, in, ...). Not for zero points outside of 0..255, nor
// for weights that are packed for each product.
bool takes_pair_tiles(const at::Tensor& x, const at::Tensor& weight,
                      const ConvolutionShape& shape, Affine affine);

// What pair_tile_convolution reads, in int16. weight: (out, in, 3, 3) in int8.
at::Tensor pack_pair_tiles(const at::Tensor& weight);

// See pair_convolution.
at::Tensor pair_tile_convolution(const at::Tensor& x, Affine affine,
                                 const at::Tensor& packed,
                                 const at::Tensor& weight_scale,
                                 const Epilogue& epilogue,
                                 const ConvolutionShape& shape);

}  // namespace xpurt
