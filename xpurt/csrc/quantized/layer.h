// The operands of quantized layers.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace xpurt {

// The scale of activations, one element in float32, and their zero point, one in int64.
// Without them the scale is that of each call.
struct StaticActivations {
  const std::optional<at::Tensor>& scale;
  const std::optional<at::Tensor>& zero_point;

  bool known() const { return scale.has_value() && scale->defined(); }
};

// A weight of int8 with a scale per output channel in float32.
struct Int8Weight {
  const at::Tensor& values;
  const at::Tensor& scale;
};

// A weight of 4 bits without a sign, of shape (out, in / 2), in groups along `in`. Byte
// j of a group has the elements j and j + size / 2, the first one in its low bits. An
// element is value * scale + minimum, which are of shape (out, groups), in float32.
struct Int4Weight {
  const at::Tensor& values;
  const at::Tensor& scale;
  const at::Tensor& minimum;
};

// What is done with the sums of products of a layer, in this order: the bias and
// `other`, which has the shape of the result, are added, and `relu` makes negative
// results 0.
struct Epilogue {
  const std::optional<at::Tensor>& bias;
  const std::optional<at::Tensor>& other;
  bool relu;

  bool adds() const { return other.has_value() && other->defined(); }
  // For a contiguous one, as the result, in float32; null without one.
  const float* added() const {
    return adds() ? other->const_data_ptr<float>() : nullptr;
  }
};

struct ConvolutionShape {
  at::IntArrayRef stride;
  at::IntArrayRef padding;
  at::IntArrayRef dilation;
  int64_t groups;

  // Along one axis of the images, for a size with or without a value.
  template <typename Size>
  Size results(size_t axis, const Size& size, const Size& kernel) const {
    const Size reach = (kernel - 1) * dilation[axis];
    return (size + 2 * padding[axis] - reach - 1) / stride[axis] + 1;
  }
};

}  // namespace xpurt
