#include "quantized/int8_products.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>

#include "quantized/activations.h"
#include "quantized/composites.h"
#include "quantized/packed_weight.h"
#include "quantized/pair_products.h"
#include "quantized/pair_tiles.h"

namespace xpurt {
namespace {

using at::IntArrayRef;
using at::Tensor;
using c10::IValue;

// The first result of an op of PyTorch that has no function in its headers.
template <typename... Arguments>
Tensor call(const char* name, Arguments&&... arguments) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  torch::jit::Stack stack;
  stack.reserve(sizeof...(arguments));
  (stack.emplace_back(std::forward<Arguments>(arguments)), ...);
  op.callBoxed(&stack);
  return stack.front().toTensor();
}

c10::List<std::optional<at::Scalar>> no_scalars() {
  return c10::List<std::optional<at::Scalar>>();
}

IValue list(IntArrayRef values) {
  return c10::List<int64_t>(values);
}

IValue optional_tensor(const std::optional<Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? IValue(*tensor) : IValue();
}

Tensor product(const Tensor& x, Affine affine, const Tensor& packed,
               const Int8Weight& weight, const std::optional<Tensor>& bias) {
  return call("onednn::qlinear_pointwise", x, double{affine.scale},
              int64_t{affine.zero_point}, packed, weight.scale,
              at::zeros(weight.scale.sizes(), at::kLong), optional_tensor(bias), 1.0,
              int64_t{0}, at::kFloat, std::string("none"), no_scalars(), std::string());
}

Tensor pack(const Tensor& weight) {
  return call("onednn::qlinear_prepack", weight, IValue());
}

bool products_are_exact() {
  constexpr int64_t kSize = 64;
  const Tensor x = at::full({1, kSize}, 255, at::kByte);
  const Tensor weight = at::full({16, kSize}, 127, at::kChar);
  const Tensor scale = at::full({16}, 1.0, at::kFloat);
  const Tensor found = product(x, {1, 0}, pack(weight), {weight, scale}, std::nullopt);
  return found.eq(255.0 * 127 * kSize).all().item<bool>();
}

bool has_integer_products() {
  static const bool exact = products_are_exact();
  return exact;
}

Affine affine_of(const StaticActivations& activations) {
  return {activations.scale->item<float>(), activations.zero_point->item<int>()};
}

// The range of the values and 0 in 256 steps; a scale of NaN if a value is not finite.
Affine affine_of_values(const Tensor& x) {
  if (x.numel() == 0) return {1, 0};
  const auto [lowest, highest] = at::aminmax(x);
  const float low = std::fmin(lowest.item<float>(), 0);
  const float high = std::fmax(highest.item<float>(), 0);
  const bool finite = std::isfinite(lowest.item<float>()) && std::isfinite(high - low);
  if (!finite) return {NAN, 0};
  if (high == low) return {1, 0};
  const float scale = (high - low) / 255;
  return {scale, static_cast<int32_t>(std::nearbyint(-low / scale))};
}

at::MemoryFormat channels_last(int64_t dims) {
  return dims == 5 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
}

bool takes_pairs(const Tensor& x, const Tensor& weight, const ConvolutionShape& shape) {
  return x.dim() <= 4 && shape.groups == 1 &&
         has_pair_products(weight.numel() / weight.size(0));
}

// Along one dimension: as along two, the first of size 1.
Tensor convolution_along_one(const Tensor& x, const Int8Weight& weight,
                             const Epilogue& epilogue,
                             const StaticActivations& activations,
                             const ConvolutionShape& shape) {
  const int64_t stride[] = {1, shape.stride[0]};
  const int64_t padding[] = {0, shape.padding[0]};
  const int64_t dilation[] = {1, shape.dilation[0]};
  // A view: its storage, which packed weights belong to, is that of the weight.
  const Int8Weight wide{weight.values.unsqueeze(2), weight.scale};
  std::optional<Tensor> other;
  if (epilogue.adds()) other = epilogue.other->unsqueeze(2);
  return int8_convolution(x.unsqueeze(2), wide, {epilogue.bias, other, epilogue.relu},
                          activations, {stride, padding, dilation, shape.groups})
      .squeeze(2);
}

}  // namespace

Tensor int8_linear(const Tensor& x, const Int8Weight& weight,
                   const std::optional<Tensor>& bias,
                   const StaticActivations& activations) {
  const bool in_pairs = !has_integer_products();
  if (x.numel() == 0 || (in_pairs && !has_pair_products(x.size(-1)))) {
    return int8_linear_composite(x, weight, bias, activations);
  }
  const int64_t columns = x.size(-1);
  const Tensor values = x.to(at::kFloat).reshape({-1, columns}).contiguous();
  const int64_t rows = values.size(0);
  const PackedForm form = in_pairs ? PackedForm::pairs : PackedForm::onednn;
  const Tensor packed = packed_weight(weight.values, form, {}, [&] {
    return in_pairs ? pack_pairs(weight.values, true) : pack(weight.values);
  });
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.values.size(0);
  if (in_pairs) {
    std::optional<Affine> affine;
    if (activations.known()) affine = affine_of(activations);
    return pair_linear(values, affine, packed, weight.scale,
                       {bias, std::nullopt, false})
        .view(sizes)
        .to(x.scalar_type());
  }
  const Tensor quantized = at::empty({rows, columns}, at::kByte);
  auto* const bytes = quantized.mutable_data_ptr<uint8_t>();
  Tensor out;
  if (activations.known()) {
    const Affine affine = affine_of(activations);
    quantize(values.const_data_ptr<float>(), values.numel(), affine, bytes);
    out = product(quantized, affine, packed, weight, bias);
  } else {
    const Tensor scales = at::empty({rows}, at::kFloat);
    auto* const per_row = scales.mutable_data_ptr<float>();
    quantize_rows(values.const_data_ptr<float>(), rows, columns, bytes, per_row);
    out = product(quantized, {1, kRowZeroPoint}, packed, weight, std::nullopt);
    const bool biased = bias.has_value() && bias->defined();
    const Tensor shift = biased ? bias->contiguous() : Tensor();
    scale_rows(out.mutable_data_ptr<float>(), rows, out.size(1), per_row,
               biased ? shift.const_data_ptr<float>() : nullptr);
  }
  return out.view(sizes).to(x.scalar_type());
}

Tensor int8_convolution(const Tensor& x, const Int8Weight& weight,
                        const Epilogue& epilogue, const StaticActivations& activations,
                        const ConvolutionShape& shape) {
  const bool in_pairs = !has_integer_products();
  if (x.numel() == 0 || (in_pairs && !takes_pairs(x, weight.values, shape))) {
    return int8_convolution_composite(x, weight, epilogue, activations, shape);
  }
  if (x.dim() == 3) {
    return convolution_along_one(x, weight, epilogue, activations, shape);
  }
  const at::MemoryFormat format = channels_last(x.dim());
  const Tensor values = x.to(at::kFloat).contiguous(format);
  std::optional<Tensor> other;
  if (epilogue.adds()) other = epilogue.other->to(at::kFloat).contiguous(format);
  const Epilogue after{epilogue.bias, other, epilogue.relu};
  const Affine affine =
      activations.known() ? affine_of(activations) : affine_of_values(values);
  if (in_pairs && takes_pair_tiles(values, weight.values, shape, affine)) {
    const Tensor packed = packed_weight(weight.values, PackedForm::pair_tiles, {},
                                        [&] { return pack_pair_tiles(weight.values); });
    return pair_tile_convolution(values, affine, packed, weight.scale, after, shape)
        .to(x.scalar_type());
  }
  if (in_pairs) {
    const bool adjacent = has_adjacent_taps(shape);
    const Tensor packed =
        packed_weight(weight.values, PackedForm::pairs, {adjacent},
                      [&] { return pack_pairs(weight.values, adjacent); });
    return pair_convolution(values, affine, packed, weight.scale, after,
                            weight.values.sizes().slice(2), shape)
        .to(x.scalar_type());
  }
  const Tensor quantized =
      at::empty(values.sizes(), at::TensorOptions(at::kByte), format);
  quantize(values.const_data_ptr<float>(), values.numel(), affine,
           quantized.mutable_data_ptr<uint8_t>());
  // oneDNN's layout may differ for zero points of 0.
  std::vector<int64_t> parameters{affine.zero_point == 0, shape.groups};
  for (const IntArrayRef each : {shape.stride, shape.padding, shape.dilation}) {
    parameters.insert(parameters.end(), each.begin(), each.end());
  }
  const Tensor packed =
      packed_weight(weight.values, PackedForm::onednn, parameters, [&] {
        return call("onednn::qconv_prepack", weight.values, weight.scale,
                    double{affine.scale}, int64_t{affine.zero_point},
                    list(shape.stride), list(shape.padding), list(shape.dilation),
                    shape.groups, list(x.sizes()));
      });
  const bool rectifies = after.relu && !after.adds();
  Tensor out =
      call("onednn::qconv_pointwise", quantized, double{affine.scale},
           int64_t{affine.zero_point}, packed, weight.scale,
           at::zeros(weight.scale.sizes(), at::kLong), optional_tensor(after.bias),
           list(shape.stride), list(shape.padding), list(shape.dilation), shape.groups,
           1.0, int64_t{0}, at::kFloat, std::string(rectifies ? "relu" : "none"),
           no_scalars(), IValue());
  if (after.adds()) out.add_(*after.other);
  if (after.relu && !rectifies) out.relu_();
  return out.to(x.scalar_type());
}

}  // namespace xpurt
