#include "quantized/weight_only.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "quantized/int4_dot.h"
#include "quantized/vectors.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr int64_t kFewRows = 4;
constexpr int64_t kBlockElements = 1 << 18;  // of float32: 1 MB

IN_ANY_ORDER float int8_dot(const float* __restrict x, const int8_t* __restrict weight,
                            int64_t size) {
  float sum = 0;
  for (int64_t k = 0; k < size; ++k) sum += x[k] * weight[k];
  return sum;
}

IN_ANY_ORDER void int8_values(const int8_t* __restrict weight, int64_t size,
                              float scale, float* __restrict out) {
  for (int64_t k = 0; k < size; ++k) out[k] = scale * weight[k];
}

IN_ANY_ORDER void int4_values(const uint8_t* __restrict bytes, int64_t half,
                              float scale, float minimum, float* __restrict out) {
  for (int64_t k = 0; k < half; ++k) out[k] = scale * (bytes[k] & 15) + minimum;
  for (int64_t k = 0; k < half; ++k) out[half + k] = scale * (bytes[k] >> 4) + minimum;
}

// The rows of an int8 weight. A row is an output channel.
struct Int8Rows {
  Int8Rows(const Int8Weight& weight, const float* /*x*/, int64_t /*rows*/)
      : columns(weight.values.size(1)),
        values(weight.values.const_data_ptr<int8_t>()),
        scale(weight.scale.const_data_ptr<float>()) {}

  float dot(const float* x, int64_t /*m*/, int64_t n) const {
    return scale[n] * int8_dot(x, values + n * columns, columns);
  }
  void to_float(int64_t n, float* out) const {
    int8_values(values + n * columns, columns, scale[n], out);
  }

  int64_t columns;
  const int8_t* values;
  const float* scale;
};

struct Int4Rows {
  Int4Rows(const Int4Weight& weight, const float* x, int64_t rows)
      : columns(2 * weight.values.size(1)),
        groups(weight.scale.size(1)),
        half(columns / groups / 2),
        values(weight.values.const_data_ptr<uint8_t>()),
        scale(weight.scale.const_data_ptr<float>()),
        minimum(weight.minimum.const_data_ptr<float>()),
        activations(x, rows <= kFewRows ? rows : 0, columns, 2 * half) {}

  float dot(const float* /*x*/, int64_t m, int64_t n) const {
    return activations.dot(m, values + n * columns / 2, scale + n * groups,
                           minimum + n * groups);
  }
  void to_float(int64_t n, float* out) const {
    for (int64_t g = 0; g < groups; ++g) {
      int4_values(values + n * columns / 2 + half * g, half, scale[n * groups + g],
                  minimum[n * groups + g], out + 2 * half * g);
    }
  }

  int64_t columns;
  int64_t groups;
  int64_t half;  // of a group's size
  const uint8_t* values;
  const float* scale;
  const float* minimum;
  Int4Activations activations;  // if there are few rows
};

template <typename Rows>
void multiply_few(const Tensor& x, const Rows& weight, Tensor& out) {
  const int64_t outputs = out.size(1);
  const auto* const values = x.const_data_ptr<float>();
  auto* const results = out.mutable_data_ptr<float>();
  const int64_t grain = 65536 / (weight.columns + 1) + 1;
  at::parallel_for(0, outputs, grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t m = 0; m < x.size(0); ++m) {
        results[m * outputs + n] = weight.dot(values + m * weight.columns, m, n);
      }
    }
  });
}

template <typename Rows>
void multiply_in_blocks(const Tensor& x, const Rows& weight, Tensor& out) {
  const int64_t outputs = out.size(1);
  const int64_t columns = weight.columns;
  const int64_t height = std::max<int64_t>(16, kBlockElements / columns);
  const Tensor block = at::empty({std::min(height, outputs), columns}, at::kFloat);
  auto* const values = block.mutable_data_ptr<float>();
  for (int64_t begin = 0; begin < outputs; begin += height) {
    const int64_t rows = std::min(height, outputs - begin);
    at::parallel_for(0, rows, 16, [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        weight.to_float(begin + n, values + n * columns);
      }
    });
    Tensor part = out.narrow(1, begin, rows);
    at::mm_out(part, x, block.narrow(0, 0, rows).t());
  }
}

template <typename Rows, typename Weight>
Tensor multiply(const Tensor& x, const Weight& weight,
                const std::optional<Tensor>& bias) {
  const int64_t columns = x.size(-1);
  const Tensor values = x.to(at::kFloat).reshape({-1, columns}).contiguous();
  Tensor out = at::empty({values.size(0), weight.values.size(0)}, at::kFloat);
  const Rows rows(weight, values.const_data_ptr<float>(), values.size(0));
  if (values.size(0) <= kFewRows) {
    multiply_few(values, rows, out);
  } else {
    multiply_in_blocks(values, rows, out);
  }
  if (bias.has_value() && bias->defined()) out.add_(*bias);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = out.size(1);
  return out.view(sizes).to(x.scalar_type());
}

}  // namespace

Tensor int8_weight_linear(const Tensor& x, const Int8Weight& weight,
                          const std::optional<Tensor>& bias) {
  return multiply<Int8Rows>(x, weight, bias);
}

Tensor int4_weight_linear(const Tensor& x, const Int4Weight& weight,
                          const std::optional<Tensor>& bias) {
  return multiply<Int4Rows>(x, weight, bias);
}

}  // namespace xpurt
