#include "quantized/composites.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/bitwise_and.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/where.h>

namespace xpurt {
namespace {

using at::Tensor;

// Activations as integers in float32, with their scale.
struct Quantized {
  Tensor values;
  Tensor scale;
};

Tensor inverse_of(const Tensor& scale) {
  const Tensor inverse = scale.reciprocal();
  return at::where(inverse.isfinite().logical_and(scale.gt(0)), inverse, 0.0);
}

Quantized quantized_by(const Tensor& x, const Tensor& scale, const Tensor& zero_point) {
  const Tensor zero = zero_point.to(at::kFloat);
  const Tensor values = (x * inverse_of(scale)).round().add(zero).clamp(0, 255);
  return {values.sub(zero), scale};
}

Quantized quantized_rows(const Tensor& x) {
  if (x.numel() == 0) return {x, x.new_zeros({1})};
  const Tensor scale = x.abs().amax({-1}, /*keepdim=*/true).div(127.0);
  return {(x * inverse_of(scale)).round().clamp(-128, 127), scale};
}

// The range of the values and 0 in 256 steps.
Quantized quantized_whole(const Tensor& x) {
  if (x.numel() == 0) return {x, x.new_zeros({1})};
  const Tensor low = x.amin().clamp_max(0);
  const Tensor range = x.amax().clamp_min(0).sub(low);
  const Tensor scale = at::where(range.eq(0), 1.0, range.div(255.0));
  return quantized_by(x, scale, low.neg().div(scale).round());
}

bool is_given(const std::optional<Tensor>& tensor) {
  return tensor.has_value() && tensor->defined();
}

// A value per channel, to be multiplied with images of `dims` dimensions.
Tensor per_channel(const Tensor& values, int64_t dims) {
  std::vector<int64_t> sizes(dims, 1);
  sizes[1] = -1;
  return values.view(sizes);
}

Tensor float_linear(const Tensor& x, const Tensor& weight,
                    const std::optional<Tensor>& bias) {
  return at::linear(x.to(at::kFloat), weight, bias).to(x.scalar_type());
}

}  // namespace

Tensor int8_linear_composite(const Tensor& x, const Int8Weight& weight,
                             const std::optional<Tensor>& bias,
                             const StaticActivations& activations) {
  const Tensor values = x.to(at::kFloat);
  const Quantized quantized =
      activations.known()
          ? quantized_by(values, *activations.scale, *activations.zero_point)
          : quantized_rows(values);
  Tensor out = at::linear(quantized.values, weight.values.to(at::kFloat));
  out = out * weight.scale * quantized.scale;
  if (is_given(bias)) out = out + *bias;
  return out.to(x.scalar_type());
}

Tensor int8_convolution_composite(const Tensor& x, const Int8Weight& weight,
                                  const Epilogue& epilogue,
                                  const StaticActivations& activations,
                                  const ConvolutionShape& shape) {
  const Tensor values = x.to(at::kFloat);
  const Quantized quantized =
      activations.known()
          ? quantized_by(values, *activations.scale, *activations.zero_point)
          : quantized_whole(values);
  const std::vector<int64_t> no_output_padding(shape.stride.size(), 0);
  Tensor out =
      at::convolution(quantized.values, weight.values.to(at::kFloat), std::nullopt,
                      shape.stride, shape.padding, shape.dilation, /*transposed=*/false,
                      no_output_padding, shape.groups);
  out = out * (per_channel(weight.scale, x.dim()) * quantized.scale);
  if (is_given(epilogue.bias)) out = out + per_channel(*epilogue.bias, x.dim());
  if (epilogue.adds()) out = out + *epilogue.other;
  if (epilogue.relu) out = out.relu();
  return out.to(x.scalar_type());
}

Tensor int8_weight_linear_composite(const Tensor& x, const Int8Weight& weight,
                                    const std::optional<Tensor>& bias) {
  const Tensor values = weight.values.to(at::kFloat) * weight.scale.unsqueeze(1);
  return float_linear(x, values, bias);
}

Tensor int4_weight_linear_composite(const Tensor& x, const Int4Weight& weight,
                                    const std::optional<Tensor>& bias) {
  const Tensor bytes =
      weight.values.unflatten(1, {weight.scale.size(1), -1});  // (out, groups, half)
  const Tensor low = bytes.bitwise_and(15);
  const Tensor high = bytes.bitwise_right_shift(4);
  const Tensor values =
      at::cat({low, high}, 2).to(at::kFloat) * weight.scale.unsqueeze(2) +
      weight.minimum.unsqueeze(2);
  return float_linear(x, values.flatten(1), bias);
}

}  // namespace xpurt
