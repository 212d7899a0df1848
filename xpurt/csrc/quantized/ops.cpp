// The ops of quantized layers.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <torch/library.h>

#include "blocks/block_composites.h"
#include "blocks/block_products.h"
#include "dispatch/dispatch.h"
#include "native/alias.h"
#include "quantized/composites.h"
#include "quantized/int8_products.h"
#include "quantized/packed_weight.h"
#include "quantized/weight_only.h"

namespace xpurt {
namespace {

using at::IntArrayRef;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

// Note [Quantized ops on xpu]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// If the host reads the memory, a quantized op is the CPU's, on the same bytes: a
// native tier like that of PyTorch's ops, and counted as such. Else it is a composite
// of ops of xpu. It is not the CPU's op on copies: the weights would travel.

void check_activations(const char* op, const Tensor& x, int64_t channels, int64_t dim) {
  TORCH_CHECK_TYPE(x.is_floating_point(), op,
                   " wants activations in floating point; found ", x.scalar_type(),
                   ". Convert them by .float()");
  TORCH_CHECK_VALUE(
      x.dim() > 0 && (dim < 0 || x.dim() > dim) && x.size(dim) == channels, op,
      " wants ", channels, " input channels in dimension ", dim,
      "; found activations of shape ", x.sizes(),
      ". Give a batch of what the layer was made for");
}

void check_linear(const char* op, const Tensor& x, int64_t columns) {
  check_activations(op, x, columns, -1);
}

void check_groups(const Tensor& weight, const Tensor& scale) {
  const int64_t columns = 2 * weight.size(1);
  const int64_t groups = scale.dim() == 2 ? scale.size(1) : 0;
  TORCH_CHECK_VALUE(
      groups > 0 && columns % groups == 0 && columns / groups % 16 == 0,
      "int4_weight_linear wants scales of shape (out, groups), for groups "
      "of a multiple of 16 inputs; found scales of shape ",
      scale.sizes(), " for a weight of ", columns,
      " inputs. xpurt.quantize(model, \"int4_weight_only\") makes them");
}

// The weight in blocks of a format of GGUF.
BlockWeight checked_blocks(const char* op, const Tensor& blocks, int64_t format) {
  const auto known = static_cast<BlockFormat>(format);
  const BlockSize size = block_size(known);
  TORCH_CHECK_VALUE(size.elements > 0, op,
                    " reads the types Q4_0 (2), Q4_1 (3), Q5_0 (6), Q5_1 (7), Q8_0 "
                    "(8), Q4_K (12), Q5_K (13) and Q6_K (14) of GGUF; found type ",
                    format, ". Unpack the tensor by gguf.quants.dequantize");
  TORCH_CHECK_VALUE(blocks.scalar_type() == at::kByte && blocks.dim() == 2 &&
                        blocks.size(1) % size.bytes == 0,
                    op, " wants uint8 of shape (rows, bytes of a row), with ",
                    size.bytes, " bytes in a block; found ", blocks.scalar_type(),
                    " of shape ", blocks.sizes());
  return {known, nullptr, blocks.size(0), blocks.size(1) / size.bytes * size.elements,
          blocks.size(1)};
}

void check_convolution(const Tensor& x, const Tensor& weight,
                       const ConvolutionShape& shape, const MaybeTensor& other) {
  TORCH_CHECK_VALUE(x.dim() == weight.dim(), "int8_convolution wants a batch of ",
                    weight.dim(), " dimensions; found shape ", x.sizes(),
                    ". Add the dimension of the batch by .unsqueeze(0)");
  check_activations("int8_convolution", x, weight.size(1) * shape.groups, 1);
  if (!other.has_value() || !other->defined()) return;
  std::vector<int64_t> sizes{x.size(0), weight.size(0)};
  for (size_t i = 0; i < shape.stride.size(); ++i) {
    sizes.push_back(shape.results(i, x.size(i + 2), weight.size(i + 2)));
  }
  TORCH_CHECK_VALUE(other->sizes() == sizes && other->scalar_type() == x.scalar_type(),
                    "int8_convolution adds a tensor of its result's shape and type, ",
                    IntArrayRef(sizes), " and ", x.scalar_type(), "; found ",
                    other->sizes(), " and ", other->scalar_type(),
                    ". Add another one to the result");
}

Tensor int8_linear_on_cpu(const Tensor& x, const Tensor& weight, const Tensor& scale,
                          const MaybeTensor& bias, const MaybeTensor& x_scale,
                          const MaybeTensor& x_zero_point) {
  check_linear("int8_linear", x, weight.size(1));
  return int8_linear(x, {weight, scale}, bias, {x_scale, x_zero_point});
}

Tensor int8_convolution_on_cpu(const Tensor& x, const Tensor& weight,
                               const Tensor& scale, const MaybeTensor& bias,
                               const MaybeTensor& x_scale,
                               const MaybeTensor& x_zero_point, IntArrayRef stride,
                               IntArrayRef padding, IntArrayRef dilation,
                               int64_t groups, bool relu, const MaybeTensor& other) {
  const ConvolutionShape shape{stride, padding, dilation, groups};
  check_convolution(x, weight, shape, other);
  return int8_convolution(x, {weight, scale}, {bias, other, relu},
                          {x_scale, x_zero_point}, shape);
}

Tensor int8_weight_linear_on_cpu(const Tensor& x, const Tensor& weight,
                                 const Tensor& scale, const MaybeTensor& bias) {
  check_linear("int8_weight_linear", x, weight.size(1));
  return int8_weight_linear(x, {weight, scale}, bias);
}

Tensor int4_weight_linear_on_cpu(const Tensor& x, const Tensor& weight,
                                 const Tensor& scale, const Tensor& minimum,
                                 const MaybeTensor& bias) {
  check_linear("int4_weight_linear", x, 2 * weight.size(1));
  check_groups(weight, scale);
  return int4_weight_linear(x, {weight, scale, minimum}, bias);
}

Tensor block_linear_on_cpu(const Tensor& x, const Tensor& blocks, int64_t format,
                           const MaybeTensor& bias) {
  BlockWeight weight = checked_blocks("block_linear", blocks, format);
  check_linear("block_linear", x, weight.columns);
  const Tensor read = blocks.contiguous();
  weight.bytes = read.const_data_ptr<uint8_t>();
  return block_product(x, weight, bias);
}

Tensor block_values_on_cpu(const Tensor& blocks, int64_t format, at::ScalarType type) {
  BlockWeight weight = checked_blocks("block_values", blocks, format);
  const Tensor read = blocks.contiguous();
  weight.bytes = read.const_data_ptr<uint8_t>();
  return values_of_blocks(weight, type);
}

bool host_reads_all_of(const Tensor& x, const Tensor& weight) {
  return host_computes((x.is_xpu() ? x : weight).device().index());
}

template <typename... Arguments>
Tensor on_host(const char* name, const Tensor& weight, const Arguments&... arguments) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  torch::jit::Stack stack{c10::IValue(arguments)...};
  const WeightOwner owner(weight);
  run_op(op_record(op), c10::DispatchKeySet(c10::DispatchKey::XPU), &stack);
  return stack.front().toTensor();
}

Tensor int8_linear_on_xpu(const Tensor& x, const Tensor& weight, const Tensor& scale,
                          const MaybeTensor& bias, const MaybeTensor& x_scale,
                          const MaybeTensor& x_zero_point) {
  if (host_reads_all_of(x, weight)) {
    return on_host("xpurt::int8_linear", weight, x, weight, scale, bias, x_scale,
                   x_zero_point);
  }
  check_linear("int8_linear", x, weight.size(1));
  return int8_linear_composite(x, {weight, scale}, bias, {x_scale, x_zero_point});
}

Tensor int8_convolution_on_xpu(const Tensor& x, const Tensor& weight,
                               const Tensor& scale, const MaybeTensor& bias,
                               const MaybeTensor& x_scale,
                               const MaybeTensor& x_zero_point, IntArrayRef stride,
                               IntArrayRef padding, IntArrayRef dilation,
                               int64_t groups, bool relu, const MaybeTensor& other) {
  if (host_reads_all_of(x, weight)) {
    return on_host("xpurt::int8_convolution", weight, x, weight, scale, bias, x_scale,
                   x_zero_point, stride, padding, dilation, groups, relu, other);
  }
  const ConvolutionShape shape{stride, padding, dilation, groups};
  check_convolution(x, weight, shape, other);
  return int8_convolution_composite(x, {weight, scale}, {bias, other, relu},
                                    {x_scale, x_zero_point}, shape);
}

Tensor int8_weight_linear_on_xpu(const Tensor& x, const Tensor& weight,
                                 const Tensor& scale, const MaybeTensor& bias) {
  if (host_reads_all_of(x, weight)) {
    return on_host("xpurt::int8_weight_linear", weight, x, weight, scale, bias);
  }
  check_linear("int8_weight_linear", x, weight.size(1));
  return int8_weight_linear_composite(x, {weight, scale}, bias);
}

Tensor int4_weight_linear_on_xpu(const Tensor& x, const Tensor& weight,
                                 const Tensor& scale, const Tensor& minimum,
                                 const MaybeTensor& bias) {
  if (host_reads_all_of(x, weight)) {
    return on_host("xpurt::int4_weight_linear", weight, x, weight, scale, minimum,
                   bias);
  }
  check_linear("int4_weight_linear", x, 2 * weight.size(1));
  check_groups(weight, scale);
  return int4_weight_linear_composite(x, {weight, scale, minimum}, bias);
}

Tensor block_linear_on_xpu(const Tensor& x, const Tensor& blocks, int64_t format,
                           const MaybeTensor& bias) {
  if (host_reads_all_of(x, blocks)) {
    return on_host("xpurt::block_linear", blocks, x, blocks, format, bias);
  }
  const BlockWeight weight = checked_blocks("block_linear", blocks, format);
  check_linear("block_linear", x, weight.columns);
  const Tensor values = values_of_blocks_composite(blocks, weight.format);
  return at::linear(x.to(at::kFloat), values, bias).to(x.scalar_type());
}

Tensor block_values_on_xpu(const Tensor& blocks, int64_t format, at::ScalarType type) {
  if (host_computes(blocks.device().index())) {
    return on_host("xpurt::block_values", blocks, blocks, format, type);
  }
  const BlockWeight weight = checked_blocks("block_values", blocks, format);
  return values_of_blocks_composite(blocks, weight.format).to(type);
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "int8_linear(Tensor x, Tensor weight, Tensor weight_scale, Tensor? bias=None, "
      "Tensor? x_scale=None, Tensor? x_zero_point=None) -> Tensor");
  m.def(
      "int8_convolution(Tensor x, Tensor weight, Tensor weight_scale, Tensor? bias, "
      "Tensor? x_scale, Tensor? x_zero_point, int[] stride, int[] padding, int[] "
      "dilation, int groups, bool relu=False, Tensor? other=None) -> Tensor");
  m.def(
      "int8_weight_linear(Tensor x, Tensor weight, Tensor weight_scale, Tensor? "
      "bias=None) -> Tensor");
  m.def(
      "int4_weight_linear(Tensor x, Tensor weight, Tensor weight_scale, Tensor "
      "weight_minimum, Tensor? bias=None) -> Tensor");
  m.def(
      "block_linear(Tensor x, Tensor blocks, int format, Tensor? bias=None) -> Tensor");
  m.def("block_values(Tensor blocks, int format, ScalarType dtype) -> Tensor");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("int8_linear", TORCH_FN(int8_linear_on_cpu));
  m.impl("int8_convolution", TORCH_FN(int8_convolution_on_cpu));
  m.impl("int8_weight_linear", TORCH_FN(int8_weight_linear_on_cpu));
  m.impl("int4_weight_linear", TORCH_FN(int4_weight_linear_on_cpu));
  m.impl("block_linear", TORCH_FN(block_linear_on_cpu));
  m.impl("block_values", TORCH_FN(block_values_on_cpu));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("int8_linear", TORCH_FN(int8_linear_on_xpu));
  m.impl("int8_convolution", TORCH_FN(int8_convolution_on_xpu));
  m.impl("int8_weight_linear", TORCH_FN(int8_weight_linear_on_xpu));
  m.impl("int4_weight_linear", TORCH_FN(int4_weight_linear_on_xpu));
  m.impl("block_linear", TORCH_FN(block_linear_on_xpu));
  m.impl("block_values", TORCH_FN(block_values_on_xpu));
}

}  // namespace
}  // namespace xpurt
