#include "quantized/pair_products.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <string>

#include "quantized/padded_pixels.h"
#include "quantized/pair_rows.h"
#include "quantized/panels.h"

namespace xpurt {
namespace {

using at::IntArrayRef;
using at::Tensor;

constexpr int64_t kLargestProduct = 255 * 128;
constexpr int64_t kBand = 96;  // results that a read of the weight serves

int64_t pairs_of(int64_t channels) {
  return (channels + 1) / 2;
}

// inputs(result): the first one. panel: without weight, scale and bias. row_scales: of
// each result, or null. out: (results, channels), as floats.
template <typename Inputs>
void multiply(const Inputs& inputs, const PairPanel& panel, const int8_t* weight,
              const std::vector<float>& scale, const std::vector<float>& bias,
              const float* row_scales, int64_t results, int64_t channels, float* out) {
  const int64_t panel_size = panel.tap_count * panel.pairs * 2 * kPairPanel;
  const auto band = [&](int64_t first, int64_t count) {
    std::vector<const int16_t*> places(count);
    for (int64_t i = 0; i < count; ++i) places[i] = inputs(first + i);
    const float* const scales = row_scales == nullptr ? nullptr : row_scales + first;
    std::vector<float> cut;  // of the last panel
    for (int64_t column = 0; column < channels; column += kPairPanel) {
      PairPanel of = panel;
      of.weight = weight + column / kPairPanel * panel_size;
      of.epilogue.scale = scale.data() + column;
      of.epilogue.bias = bias.data() + column;
      float* const to = out + first * channels + column;
      const int64_t width = std::min(kPairPanel, channels - column);
      if (width == kPairPanel) {
        multiply_pairs(of, count, places.data(), scales, to, channels);
        continue;
      }
      cut.resize(count * kPairPanel);
      multiply_pairs(of, count, places.data(), scales, cut.data(), kPairPanel);
      for (int64_t i = 0; i < count; ++i) {
        std::copy_n(cut.data() + i * kPairPanel, width, to + i * channels);
      }
    }
  };
  at::parallel_for(0, results, kBand, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kBand) {
      band(first, std::min(kBand, end - first));
    }
  });
}

}  // namespace

bool has_pair_products(int64_t products) {
#if defined(__x86_64__)
  static const bool has_avx2 = at::get_cpu_capability() != "DEFAULT";
  return has_avx2 && products <= std::numeric_limits<int32_t>::max() / kLargestProduct;
#else
  return false;
#endif
}

Tensor pack_pairs(const Tensor& weight) {
  const int64_t out = weight.size(0), in = weight.size(1);
  const int64_t taps = weight.numel() == 0 ? 0 : weight[0][0].numel();
  const int64_t panels = panels_of(out), pairs = pairs_of(in);
  const Tensor plain = weight.contiguous();
  const auto* const from = plain.const_data_ptr<int8_t>();
  const Tensor packed = at::zeros({panels, taps, pairs, kPairPanel, 2}, at::kChar);
  auto* const to = packed.mutable_data_ptr<int8_t>();
  for (int64_t n = 0; n < out; ++n) {
    for (int64_t c = 0; c < in; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        const int64_t pair = ((n / kPairPanel * taps + tap) * pairs + c / 2);
        to[(pair * kPairPanel + n % kPairPanel) * 2 + c % 2] =
            from[(n * in + c) * taps + tap];
      }
    }
  }
  return packed;
}

Tensor pair_linear(const Tensor& x, std::optional<Affine> affine, const Tensor& packed,
                   const Tensor& weight_scale, const std::optional<Tensor>& bias) {
  const int64_t rows = x.size(0), columns = x.size(1), wide = 2 * pairs_of(columns);
  const Tensor quantized = at::empty({rows, wide}, at::kShort);
  auto* const values = quantized.mutable_data_ptr<int16_t>();
  std::vector<float> row_scales(affine.has_value() ? 0 : rows);
  at::parallel_for(0, rows, kBand, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* const from = x.const_data_ptr<float>() + row * columns;
      int16_t* const to = values + row * wide;
      if (affine.has_value()) {
        quantize_pixels(from, 1, columns, *affine, to);
        continue;
      }
      row_scales[row] = quantize_row_centered(from, columns, to);
      if (wide > columns) to[columns] = 0;
    }
  });
  const int64_t channels = weight_scale.size(0), tap = 0;
  Tensor out = at::empty({rows, channels}, at::kFloat);
  multiply([&](int64_t row) { return values + row * wide; },
           {&tap, 1, wide / 2, nullptr, {nullptr, nullptr, false}},
           packed.const_data_ptr<int8_t>(),
           scale_in_panels(weight_scale, affine.has_value() ? affine->scale : 1),
           bias_in_panels(bias, channels),
           affine.has_value() ? nullptr : row_scales.data(), rows, channels,
           out.mutable_data_ptr<float>());
  return out;
}

Tensor pair_convolution(const Tensor& x, Affine affine, const Tensor& packed,
                        const Tensor& weight_scale, const std::optional<Tensor>& bias,
                        IntArrayRef kernel, const ConvolutionShape& shape, bool relu) {
  const int64_t height = x.size(2) + 2 * shape.padding[0];
  const int64_t width = x.size(3) + 2 * shape.padding[1];
  const PaddedPixels pixels(x, affine,
                            {shape.padding[0], shape.padding[1], height, width});
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < kernel[0]; ++i) {
    for (int64_t j = 0; j < kernel[1]; ++j) {
      taps.push_back(i * shape.dilation[0] * pixels.row +
                     j * shape.dilation[1] * pixels.pixel);
    }
  }
  const auto results = [&](int64_t axis, int64_t size) {
    const int64_t reach = (kernel[axis] - 1) * shape.dilation[axis];
    return (size - reach - 1) / shape.stride[axis] + 1;
  };
  const int64_t rows = results(0, height), columns = results(1, width);
  Tensor out = at::empty({x.size(0), weight_scale.size(0), rows, columns},
                         at::TensorOptions(at::kFloat), at::MemoryFormat::ChannelsLast);
  multiply(
      [&](int64_t result) {
        const int64_t row = result / columns, y = row % rows * shape.stride[0];
        return pixels.image(row / rows) + y * pixels.row +
               result % columns * shape.stride[1] * pixels.pixel;
      },
      {taps.data(),
       static_cast<int64_t>(taps.size()),
       pixels.pixel / 2,
       nullptr,
       {nullptr, nullptr, relu}},
      packed.const_data_ptr<int8_t>(), scale_in_panels(weight_scale, affine.scale),
      bias_in_panels(bias, weight_scale.size(0)), nullptr, x.size(0) * rows * columns,
      weight_scale.size(0), out.mutable_data_ptr<float>());
  return out;
}

}  // namespace xpurt
