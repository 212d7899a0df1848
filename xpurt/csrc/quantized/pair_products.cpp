#include "quantized/pair_products.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <string>

#include "quantized/pair_rows.h"

namespace xpurt {
namespace {

using at::IntArrayRef;
using at::Tensor;

constexpr int64_t kLargestProduct = 255 * 128;
constexpr int64_t kBand = 96;  // results that a read of the weight serves

int64_t pairs_of(int64_t channels) {
  return (channels + 1) / 2;
}

int64_t panels_of(int64_t channels) {
  return (channels + kPairPanel - 1) / kPairPanel;
}

// A value per output channel, of whole panels.
std::vector<float> in_panels(const Tensor& values, float factor) {
  std::vector<float> found(panels_of(values.numel()) * kPairPanel, 0.0f);
  const Tensor plain = values.to(at::kFloat).contiguous();
  const float* const from = plain.const_data_ptr<float>();
  for (int64_t n = 0; n < values.numel(); ++n) found[n] = from[n] * factor;
  return found;
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
      of.scale = scale.data() + column;
      of.bias = bias.data() + column;
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

std::vector<float> bias_in_panels(const std::optional<Tensor>& bias, int64_t channels) {
  if (bias.has_value() && bias->defined()) return in_panels(*bias, 1);
  return std::vector<float>(panels_of(channels) * kPairPanel, 0.0f);
}

// Pixels without the zero point, in 16 bits; an odd number of channels is filled up by
// 0.
void quantize_pixels(const float* from, int64_t pixels, int64_t channels, Affine affine,
                     int16_t* to) {
  if (channels % 2 == 0) {
    quantize_centered(from, pixels * channels, affine, to);
    return;
  }
  for (int64_t pixel = 0; pixel < pixels; ++pixel) {
    quantize_centered(from + pixel * channels, channels, affine, to);
    to += channels;
    *to++ = 0;
  }
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
           {&tap, 1, wide / 2, nullptr, nullptr, nullptr, false},
           packed.const_data_ptr<int8_t>(),
           in_panels(weight_scale, affine.has_value() ? affine->scale : 1),
           bias_in_panels(bias, channels),
           affine.has_value() ? nullptr : row_scales.data(), rows, channels,
           out.mutable_data_ptr<float>());
  return out;
}

Tensor pair_convolution(const Tensor& x, Affine affine, const Tensor& packed,
                        const Tensor& weight_scale, const std::optional<Tensor>& bias,
                        IntArrayRef kernel, const ConvolutionShape& shape, bool relu) {
  const int64_t images = x.size(0), channels = x.size(1), height = x.size(2),
                width = x.size(3), wide = 2 * pairs_of(channels);
  const int64_t top = shape.padding[0], left = shape.padding[1];
  const int64_t padded_height = height + 2 * top, padded_width = width + 2 * left;
  const Tensor padded =
      at::empty({images, padded_height, padded_width, wide}, at::kShort);
  auto* const values = padded.mutable_data_ptr<int16_t>();
  at::parallel_for(0, images * padded_height, 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t image = row / padded_height, y = row % padded_height - top;
      int16_t* const to = values + row * padded_width * wide;
      if (y < 0 || y >= height) {
        std::fill_n(to, padded_width * wide, int16_t{0});
        continue;
      }
      std::fill_n(to, left * wide, int16_t{0});
      std::fill_n(to + (left + width) * wide, left * wide, int16_t{0});
      quantize_pixels(
          x.const_data_ptr<float>() + (image * height + y) * width * channels, width,
          channels, affine, to + left * wide);
    }
  });
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < kernel[0]; ++i) {
    for (int64_t j = 0; j < kernel[1]; ++j) {
      taps.push_back((i * shape.dilation[0] * padded_width + j * shape.dilation[1]) *
                     wide);
    }
  }
  const auto results = [&](int64_t axis, int64_t size) {
    const int64_t reach = (kernel[axis] - 1) * shape.dilation[axis];
    return (size - reach - 1) / shape.stride[axis] + 1;
  };
  const int64_t rows = results(0, padded_height), columns = results(1, padded_width);
  Tensor out = at::empty({images, weight_scale.size(0), rows, columns},
                         at::TensorOptions(at::kFloat), at::MemoryFormat::ChannelsLast);
  multiply(
      [&](int64_t result) {
        const int64_t row = result / columns, y = row % rows * shape.stride[0];
        const int64_t x = result % columns * shape.stride[1];
        return values + ((row / rows * padded_height + y) * padded_width + x) * wide;
      },
      {taps.data(), static_cast<int64_t>(taps.size()), wide / 2, nullptr, nullptr,
       nullptr, relu},
      packed.const_data_ptr<int8_t>(), in_panels(weight_scale, affine.scale),
      bias_in_panels(bias, weight_scale.size(0)), nullptr, images * rows * columns,
      weight_scale.size(0), out.mutable_data_ptr<float>());
  return out;
}

}  // namespace xpurt
