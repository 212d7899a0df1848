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

// The inputs of a band of results.
struct Band {
  std::vector<const int16_t*> first;  // of each result
  std::vector<float> scales;          // of each result, or none
  std::vector<int16_t> memory;
};

// inputs(first, count, band): makes the band of `count` results. shape: a weight
// without its values, scale and bias. other, out: (results, channels), as floats.
template <typename Inputs>
void multiply(const Inputs& inputs, const PairPanels& shape, const Tensor& packed,
              const std::vector<float>& scale, const std::vector<float>& bias,
              int64_t results, int64_t channels, const float* other, float* out) {
  PairPanels all = shape;
  all.weight = packed.const_data_ptr<int8_t>();
  all.epilogue.scale = scale.data();
  all.epilogue.bias = bias.data();
  const int64_t whole = channels / kPairPanel, column = whole * kPairPanel;
  const int64_t width = channels - column;  // of the last panel, if it is cut
  const auto multiply_band = [&](int64_t first, int64_t count, const Band& band) {
    const float* const scales = band.scales.empty() ? nullptr : band.scales.data();
    const PairResults to = PairResults{out, other, channels}.from(first, 0);
    multiply_pairs(all.part(0, whole), count, band.first.data(), scales, to);
    if (width == 0) return;
    std::vector<float> cut(count * kPairPanel);
    for (int64_t i = 0; other != nullptr && i < count; ++i) {
      std::copy_n(to.from(i, column).other, width, cut.data() + i * kPairPanel);
    }
    const float* const added = other == nullptr ? nullptr : cut.data();
    multiply_pairs(all.part(whole, 1), count, band.first.data(), scales,
                   {cut.data(), added, kPairPanel});
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(cut.data() + i * kPairPanel, width, to.from(i, column).values);
    }
  };
  at::parallel_for(0, results, kBand, [&](int64_t begin, int64_t end) {
    Band band;
    for (int64_t first = begin; first < end; first += kBand) {
      const int64_t count = std::min(kBand, end - first);
      band.first.resize(count);
      inputs(first, count, band);
      multiply_band(first, count, band);
    }
  });
}

bool is_plain_product(IntArrayRef kernel, const ConvolutionShape& shape) {
  return kernel[0] == 1 && kernel[1] == 1 && shape.padding[0] == 0 &&
         shape.padding[1] == 0;
}

// Of a kernel of 1x1: each pixel is a row.
Tensor convolution_of_pixels(const Tensor& x, Affine affine, const Tensor& packed,
                             const Tensor& weight_scale, const Epilogue& epilogue,
                             const ConvolutionShape& shape) {
  const Tensor pixels = x.slice(2, std::nullopt, std::nullopt, shape.stride[0])
                            .slice(3, std::nullopt, std::nullopt, shape.stride[1])
                            .permute({0, 2, 3, 1})
                            .contiguous();
  const Tensor out = pair_linear(pixels.view({-1, pixels.size(3)}), affine, packed,
                                 weight_scale, epilogue);
  return out.view({pixels.size(0), pixels.size(1), pixels.size(2), -1})
      .permute({0, 3, 1, 2});
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

bool has_adjacent_taps(const ConvolutionShape& shape) {
  return shape.dilation[1] == 1;
}

Tensor pack_pairs(const Tensor& weight, bool adjacent) {
  const int64_t out = weight.size(0), in = weight.size(1);
  const int64_t width = weight.dim() == 4 ? weight.size(3) : 1;
  const int64_t all_taps = weight.numel() == 0 ? 0 : weight[0][0].numel();
  const int64_t merged = adjacent ? width : 1;
  const int64_t taps = all_taps / merged;
  const int64_t panels = panels_of(out), pairs = pairs_of(in * merged);
  const Tensor plain = weight.contiguous();
  const auto* const from = plain.const_data_ptr<int8_t>();
  const Tensor packed = at::zeros({panels, taps, pairs, kPairPanel, 2}, at::kChar);
  auto* const to = packed.mutable_data_ptr<int8_t>();
  for (int64_t n = 0; n < out; ++n) {
    for (int64_t c = 0; c < in; ++c) {
      for (int64_t tap = 0; tap < all_taps; ++tap) {
        const int64_t input = tap % merged * in + c;
        const int64_t pair = (n / kPairPanel * taps + tap / merged) * pairs + input / 2;
        to[(pair * kPairPanel + n % kPairPanel) * 2 + input % 2] =
            from[(n * in + c) * all_taps + tap];
      }
    }
  }
  return packed;
}

Tensor pair_linear(const Tensor& x, std::optional<Affine> affine, const Tensor& packed,
                   const Tensor& weight_scale, const Epilogue& epilogue) {
  const int64_t rows = x.size(0), columns = x.size(1), wide = 2 * pairs_of(columns);
  const float* const values = x.const_data_ptr<float>();
  // Quantized per band, which stays in the cache.
  const auto inputs = [&](int64_t first, int64_t count, Band& band) {
    band.memory.resize(count * wide);
    if (!affine.has_value()) band.scales.resize(count);
    const bool whole = affine.has_value() && wide == columns;
    if (whole) {
      quantize_centered(values + first * columns, count * columns, *affine,
                        band.memory.data());
    }
    for (int64_t i = 0; i < count; ++i) {
      const float* const from = values + (first + i) * columns;
      int16_t* const to = band.memory.data() + i * wide;
      band.first[i] = to;
      if (whole) continue;
      if (affine.has_value()) {
        quantize_centered(from, columns, *affine, to);
      } else {
        band.scales[i] = quantize_row_centered(from, columns, to);
      }
      if (wide > columns) to[columns] = 0;
    }
  };
  const int64_t channels = weight_scale.size(0), tap = 0;
  Tensor out = at::empty({rows, channels}, at::kFloat);
  multiply(inputs, {&tap, 1, wide / 2, nullptr, 0, {nullptr, nullptr, epilogue.relu}},
           packed,
           scale_in_panels(weight_scale, affine.has_value() ? affine->scale : 1),
           bias_in_panels(epilogue.bias, channels), rows, channels, epilogue.added(),
           out.mutable_data_ptr<float>());
  return out;
}

Tensor pair_convolution(const Tensor& x, Affine affine, const Tensor& packed,
                        const Tensor& weight_scale, const Epilogue& epilogue,
                        IntArrayRef kernel, const ConvolutionShape& shape) {
  if (is_plain_product(kernel, shape)) {
    return convolution_of_pixels(x, affine, packed, weight_scale, epilogue, shape);
  }
  const bool adjacent = has_adjacent_taps(shape);
  const int64_t height = x.size(2) + 2 * shape.padding[0];
  const int64_t width = x.size(3) + 2 * shape.padding[1];
  const PaddedPixels pixels(
      x, affine, {shape.padding[0], shape.padding[1], height, width}, adjacent ? 1 : 2);
  std::vector<int64_t> taps;
  for (int64_t i = 0; i < kernel[0]; ++i) {
    for (int64_t j = 0; j < (adjacent ? 1 : kernel[1]); ++j) {
      taps.push_back(i * shape.dilation[0] * pixels.row +
                     j * shape.dilation[1] * pixels.pixel);
    }
  }
  const auto results = [&](int64_t axis, int64_t size) {
    const int64_t reach = (kernel[axis] - 1) * shape.dilation[axis];
    return (size - reach - 1) / shape.stride[axis] + 1;
  };
  const int64_t rows = results(0, height), columns = results(1, width);
  const auto inputs = [&](int64_t first, int64_t count, Band& band) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = (first + i) / columns, y = row % rows * shape.stride[0];
      band.first[i] = pixels.image(row / rows) + y * pixels.row +
                      (first + i) % columns * shape.stride[1] * pixels.pixel;
    }
  };
  Tensor out = at::empty({x.size(0), weight_scale.size(0), rows, columns},
                         at::TensorOptions(at::kFloat), at::MemoryFormat::ChannelsLast);
  multiply(inputs,
           {taps.data(),
            static_cast<int64_t>(taps.size()),
            pairs_of(adjacent ? kernel[1] * x.size(1) : x.size(1)),
            nullptr,
            0,
            {nullptr, nullptr, epilogue.relu}},
           packed, scale_in_panels(weight_scale, affine.scale),
           bias_in_panels(epilogue.bias, weight_scale.size(0)),
           x.size(0) * rows * columns, weight_scale.size(0), epilogue.added(),
           out.mutable_data_ptr<float>());
  return out;
}

}  // namespace xpurt
