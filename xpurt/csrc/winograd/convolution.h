// Convolutions of 3x3 by fewer multiplications.
#pragma once

#include "lanes/kernels.h"
#include "winograd/tiles.h"

namespace xpurt {

// Note [Winograd on the processor]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// F(4x4, 3x3) computes a tile of 4x4 results from 6x6 pixels by 36 multiplications per
// pair of channels instead of 144 (Winograd, 1980; Lavin and Gray, 2015). The weight is
// transformed once. A call transforms a part of the tiles, multiplies each of the 36
// matrices by the weight's, and transforms the products, with what is added to them.
//
// The direct convolutions of oneDNN run near the processor's peak, so only fewer
// multiplications take less time. Of the layers of a ResNet-18 these took 0.38 to 0.48
// of the time of oneDNN's, with a ReLU (AMD EPYC with AVX-512, one thread, 8 images of
// 224x224, processor time, 2026-11-26), and with AVX2 0.46 to 0.52 (2026-11-30).
//
// oneDNN's products were not taken. They are for whole matrices on a queue; here tiles
// stay in the cache between the three steps, the results of any tile count fill the
// registers, and memory of the CPU needs no queue.
//
// Parts are computed at the same time where there are enough of them. Else the threads
// divide each step of a part: a thread then reads a part of the weight only.

// input and result: images, see tiles.h; weight: (36, out_channels / panel,
// in_channels, panel). in_channels is a multiple of kChannels, out_channels one of
// panel. Runs on PyTorch's threads.
void winograd_convolution(const Kernels& kernels, const TiledConvolution& conv,
                          const float* input, const float* weight,
                          const TileEpilogue& epilogue, float* result);

}  // namespace xpurt
