// Quantized images with their padding.
#pragma once

#include <ATen/core/Tensor.h>

#include "quantized/activations.h"

namespace xpurt {

// Rows and columns of an image with what is before and after it.
struct Padding {
  int64_t top;
  int64_t left;
  int64_t height;  // of all
  int64_t width;
};

// Images in channels last, (images, height, width, channels), in 16 bits without the
// zero point. The padding is 0.
struct PaddedPixels {
  // x: (images, channels, height, width) in channels last, in float32. multiple: of
  // what the channels are filled up to, by 0. One integer after the last pixel can be
  // read.
  PaddedPixels(const at::Tensor& x, Affine affine, Padding padding, int64_t multiple);

  const int16_t* image(int64_t index) const {
    return memory.const_data_ptr<int16_t>() + index * height * row;
  }

  int64_t height;
  int64_t pixel;  // from a pixel to the next
  int64_t row;    // from a row to the next
  at::Tensor memory;
};

}  // namespace xpurt
