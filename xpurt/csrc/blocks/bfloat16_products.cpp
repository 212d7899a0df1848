#include "blocks/bfloat16_products.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "blocks/block_kernels.h"

namespace xpurt {

using at::Tensor;

bool multiplies_rows_of_bfloat16() {
  return block_kernels().multiply_bfloat16 != nullptr;
}

Tensor bfloat16_product(const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
  const Tensor values = x.contiguous(), read = weight.contiguous();
  const int64_t columns = weight.size(1), results = weight.size(0);
  std::vector<int64_t> sizes = x.sizes().vec();
  const int64_t rows = c10::multiply_integers(sizes.begin(), sizes.end() - 1);
  sizes.back() = results;
  Tensor out = at::empty(sizes, x.options());
  if (out.numel() == 0) return out;
  std::vector<float> sums(rows * results);
  const auto bits = [](const Tensor& tensor) {
    return reinterpret_cast<const uint16_t*>(tensor.const_data_ptr<at::BFloat16>());
  };
  const Bfloat16Product product{bits(read), bits(values), results, columns, rows};
  Tensor added;
  if (bias.has_value() && bias->defined()) added = bias->contiguous();
  const auto* const biases =
      added.defined() ? added.const_data_ptr<at::BFloat16>() : nullptr;
  auto* const to = out.mutable_data_ptr<at::BFloat16>();
  const int64_t grain = 65536 / (columns + 1) + 1;
  at::parallel_for(0, results, grain, [&](int64_t begin, int64_t end) {
    block_kernels().multiply_bfloat16(product, begin, end, sums.data());
    for (int64_t m = 0; m < rows; ++m) {
      for (int64_t n = begin; n < end; ++n) {
        const float bias_of = biases == nullptr ? 0 : static_cast<float>(biases[n]);
        to[m * results + n] = sums[m * results + n] + bias_of;
      }
    }
  });
  return out;
}

}  // namespace xpurt
