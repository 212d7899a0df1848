#include "quantized/weight_only.h"

#include "blocks/block_products.h"

namespace xpurt {

using at::Tensor;

Tensor int8_weight_linear(const Tensor& x, const Int8Weight& weight,
                          const std::optional<Tensor>& bias) {
  const Tensor values = weight.values.contiguous(), scale = weight.scale.contiguous();
  BlockWeight blocks{BlockFormat::int8_channels,
                     reinterpret_cast<const uint8_t*>(values.const_data_ptr<int8_t>()),
                     values.size(0), values.size(1), values.size(1)};
  blocks.scale = scale.const_data_ptr<float>();
  return block_product(x, blocks, bias);
}

Tensor int4_weight_linear(const Tensor& x, const Int4Weight& weight,
                          const std::optional<Tensor>& bias) {
  const Tensor values = weight.values.contiguous(), scale = weight.scale.contiguous();
  const Tensor minimum = weight.minimum.contiguous();
  BlockWeight blocks{BlockFormat::int4_groups, values.const_data_ptr<uint8_t>(),
                     values.size(0), 2 * values.size(1), values.size(1)};
  blocks.scale = scale.const_data_ptr<float>();
  blocks.minimum = minimum.const_data_ptr<float>();
  blocks.group = blocks.columns / scale.size(1);
  return block_product(x, blocks, bias);
}

}  // namespace xpurt
