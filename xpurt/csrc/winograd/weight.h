// Weights that are transformed in each call, since training changes them.
#pragma once

#include "lanes/kernels.h"

namespace xpurt {

// A weight of 3x3 as it is: (outputs, inputs, 3, 3). With `of_gradient` it is that of
// the convolution of the result's gradient which makes the input's: outputs and inputs
// are exchanged, and the taps are in reverse order.
struct PlainWeight {
  const float* first;
  int64_t out_channels;  // of the convolution that uses it
  int64_t in_channels;
  bool of_gradient;
};

// made: (36, out_channels / panel, in_channels, panel). out_channels is a multiple of
// panel. Runs on PyTorch's threads.
void transform_weight(const Kernels& kernels, const PlainWeight& weight, float* made);

}  // namespace xpurt
