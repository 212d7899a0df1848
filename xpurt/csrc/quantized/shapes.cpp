// The shapes of quantized layers' results, for tensors without memory and for
// compilers.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "blocks/block_weight.h"
#include "quantized/layer.h"

namespace xpurt {
namespace {

using at::IntArrayRef;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

Tensor linear_result(const Tensor& x, const Tensor& weight) {
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes.back() = weight.sym_size(0);
  return x.new_empty_symint(sizes);
}

Tensor int8_linear(const Tensor& x, const Tensor& weight, const Tensor&,
                   const MaybeTensor&, const MaybeTensor&, const MaybeTensor&) {
  return linear_result(x, weight);
}

Tensor int8_weight_linear(const Tensor& x, const Tensor& weight, const Tensor&,
                          const MaybeTensor&) {
  return linear_result(x, weight);
}

Tensor int4_weight_linear(const Tensor& x, const Tensor& weight, const Tensor&,
                          const Tensor&, const MaybeTensor&) {
  return linear_result(x, weight);
}

Tensor block_linear(const Tensor& x, const Tensor& blocks, int64_t,
                    const MaybeTensor&) {
  return linear_result(x, blocks);
}

Tensor block_values(const Tensor& blocks, int64_t format, at::ScalarType type) {
  const BlockSize size = block_size(static_cast<BlockFormat>(format));
  const c10::SymInt columns = blocks.sym_size(1) / size.bytes * size.elements;
  return at::empty_symint({blocks.sym_size(0), columns}, blocks.options().dtype(type));
}

Tensor int8_convolution(const Tensor& x, const Tensor& weight, const Tensor&,
                        const MaybeTensor&, const MaybeTensor&, const MaybeTensor&,
                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                        int64_t groups, bool, const MaybeTensor&) {
  const ConvolutionShape shape{stride, padding, dilation, groups};
  std::vector<c10::SymInt> sizes{x.sym_size(0), weight.sym_size(0)};
  for (size_t i = 0; i < stride.size(); ++i) {
    sizes.push_back(shape.results(i, x.sym_size(i + 2), weight.sym_size(i + 2)));
  }
  const Tensor result = x.new_empty_symint(sizes);
  if (sizes.size() == 3) return result;
  return result.contiguous(sizes.size() == 5 ? at::MemoryFormat::ChannelsLast3d
                                             : at::MemoryFormat::ChannelsLast);
}

TORCH_LIBRARY_IMPL(xpurt, Meta, m) {
  m.impl("int8_linear", TORCH_FN(int8_linear));
  m.impl("int8_weight_linear", TORCH_FN(int8_weight_linear));
  m.impl("int4_weight_linear", TORCH_FN(int4_weight_linear));
  m.impl("block_linear", TORCH_FN(block_linear));
  m.impl("block_values", TORCH_FN(block_values));
  m.impl("int8_convolution", TORCH_FN(int8_convolution));
}

}  // namespace
}  // namespace xpurt
