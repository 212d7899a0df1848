#include "blocks/block_products.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <string_view>

#include "blocks/block_kernels.h"

namespace xpurt {
namespace {

// Of processors with AMX, too.
bool multiplies_bfloat16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

const BlockKernels& chosen_kernels() {
#if defined(__x86_64__)
  const std::string_view name = at::get_cpu_capability();
  if (name == "AVX512" && multiplies_bfloat16()) return kAvx512BlockKernels;
  if (name == "AVX512" || name == "AVX2") return kAvx2BlockKernels;
#endif
  return kAnyBlockKernels;
}

}  // namespace

const BlockKernels& block_kernels() {
  static const BlockKernels& kernels = chosen_kernels();
  return kernels;
}

namespace {

using at::Tensor;

// Of integers: one thread of an AMD EPYC of Zen 4, 2048 inputs and 8192 outputs in Q4_0
// took 0.6 ms a row, and unpacked 4.3 (8 rows in bfloat16) and 10.5 (in float32).
constexpr int64_t kFewRows = 16;
constexpr int64_t kFewRowsBeforeBFloat16 = 6;
constexpr int64_t kUnpackedBytes = 4 << 20;

void write_rows(const BlockWeight& weight, int64_t begin, int64_t rows, Tensor& out) {
  const BlockKernels& kernels = block_kernels();
  const bool narrow = out.scalar_type() == at::kBFloat16;
  at::parallel_for(0, rows, 32, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n) {
      const int64_t at = n * weight.columns;
      if (narrow) {
        auto* const values = out.mutable_data_ptr<at::BFloat16>();
        kernels.to_bfloat16(weight, begin + n,
                            reinterpret_cast<uint16_t*>(values + at));
      } else {
        kernels.to_float(weight, begin + n, out.mutable_data_ptr<float>() + at);
      }
    }
  });
}

bool unpacks_to_bfloat16(const Tensor& x) {
  return x.scalar_type() == at::kBFloat16 && multiplies_bfloat16();
}

// x: (rows, columns)
Tensor multiply_unpacked(const Tensor& x, const BlockWeight& weight) {
  const bool narrow = unpacks_to_bfloat16(x);
  const at::ScalarType type = narrow ? at::kBFloat16 : at::kFloat;
  const Tensor values = x.to(type);
  Tensor out = at::empty({x.size(0), weight.rows}, values.options());
  const int64_t row_bytes = weight.columns * values.element_size();
  const int64_t height = std::max<int64_t>(32, kUnpackedBytes / row_bytes);
  Tensor block = at::empty({std::min(height, weight.rows), weight.columns}, type);
  for (int64_t begin = 0; begin < weight.rows; begin += height) {
    const int64_t rows = std::min(height, weight.rows - begin);
    write_rows(weight, begin, rows, block);
    Tensor part = out.narrow(1, begin, rows);
    at::mm_out(part, values, block.narrow(0, 0, rows).t());
  }
  return out;
}

Tensor multiply_few(const BlockWeight& weight, const BlockActivations& x,
                    int64_t rows) {
  Tensor out = at::empty({x.rows(), weight.rows}, at::kFloat);
  auto* const results = out.mutable_data_ptr<float>();
  const int64_t grain = 65536 / (weight.columns + 1) + 1;
  at::parallel_for(0, weight.rows, grain, [&](int64_t begin, int64_t end) {
    block_kernels().multiply(weight, x, begin, end, results);
  });
  return x.rows() == rows ? out : out.view({rows, -1, weight.rows}).sum(1);
}

bool has_whole_parts(const BlockWeight& weight) {
  return weight.format != BlockFormat::int4_groups || weight.group % kPart == 0;
}

bool has_few_rows(const Tensor& x) {
  const int64_t rows = BlockActivations::rows_of(x.scalar_type(), x.size(0));
  return rows > 0 &&
         rows <= (unpacks_to_bfloat16(x) ? kFewRowsBeforeBFloat16 : kFewRows);
}

Tensor multiply(const Tensor& x, const BlockWeight& weight) {
  if (has_few_rows(x) && has_whole_parts(weight)) {
    const BlockActivations activations(x.const_data_ptr(), x.scalar_type(), x.size(0),
                                       weight);
    if (activations.all_fit()) return multiply_few(weight, activations, x.size(0));
  }
  return multiply_unpacked(x, weight);
}

}  // namespace

Tensor block_product(const Tensor& x, const BlockWeight& weight,
                     const std::optional<Tensor>& bias) {
  std::vector<int64_t> sizes = x.sizes().vec();
  const int64_t rows = c10::multiply_integers(sizes.begin(), sizes.end() - 1);
  sizes.back() = weight.rows;
  const at::ScalarType type = x.scalar_type();
  const bool is_read = type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
  const Tensor values = (is_read ? x : x.to(at::kFloat)).contiguous();
  Tensor out = multiply(values.view({rows, weight.columns}), weight);
  if (bias.has_value() && bias->defined()) out.add_(*bias);
  return out.view(sizes).to(type);
}

Tensor values_of_blocks(const BlockWeight& weight, at::ScalarType type) {
  const bool narrow = type == at::kBFloat16;
  Tensor out = at::empty({weight.rows, weight.columns}, narrow ? type : at::kFloat);
  write_rows(weight, 0, weight.rows, out);
  return out.to(type);
}

}  // namespace xpurt
