// The transforms of Winograd's algorithm before and after the products.
#pragma once

#include "lanes/kernels.h"

namespace xpurt {

// Transforms `count` tiles of the input to rows of the matrices at `made`.
void transform_input(const Kernels& kernels, const TiledConvolution& conv,
                     const float* input, int64_t first, int64_t count,
                     const Matrices& matrices, float* made);

// Transforms the products of `count` tiles to results.
void transform_output(const Kernels& kernels, const TiledConvolution& conv,
                      const float* products, const Matrices& matrices, int64_t first,
                      int64_t count, const TileEpilogue& epilogue, float* result);

}  // namespace xpurt
