// The op xpurt::winograd_conv2d.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "panels/lane_op.h"
#include "winograd/convolution.h"

namespace xpurt {
namespace {

using at::IntArrayRef;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr LaneOp kConvolution{"xpurt::winograd_conv2d", "torch.nn.functional.conv2d"};
constexpr const char* kName = kConvolution.name;

bool is_given(const MaybeTensor& tensor) {
  return tensor.has_value() && tensor->defined();
}

void check_values(const char* what, const Tensor& tensor) {
  kConvolution.check_type(what, tensor);
  TORCH_CHECK_VALUE(tensor.is_contiguous(), kName, " wants ", what,
                    " that is contiguous; found sizes ", tensor.sizes(),
                    " with strides ", tensor.strides(),
                    ". Convert it by .contiguous()");
}

at::MemoryFormat format_of(const TiledConvolution& conv) {
  return conv.block > 0 ? at::MemoryFormat::Contiguous : at::MemoryFormat::ChannelsLast;
}

// The sizes of a convolution's result.
std::vector<int64_t> sizes_of(const TiledConvolution& conv) {
  if (conv.block == 0) {
    return {conv.images, conv.out_channels, conv.out_height(), conv.out_width()};
  }
  return {conv.images, conv.out_channels / conv.block, conv.out_height(),
          conv.out_width(), conv.block};
}

// Channels that a block may have: a divisor of the layer's in whole lanes.
bool is_block(const Kernels& kernels, int64_t channels) {
  return channels == kChannels || channels == kernels.lanes;
}

TiledConvolution checked(const Tensor& input, const Tensor& weight,
                         const MaybeTensor& bias, const MaybeTensor& other,
                         IntArrayRef padding) {
  const Kernels& kernels = kConvolution.kernels();
  const int64_t block = input.dim() == 5 ? input.size(4) : 0;
  TORCH_CHECK_VALUE(input.dim() == 4 || (input.dim() == 5 && is_block(kernels, block)),
                    kName,
                    " wants images of 4 dimensions, or of 5 of which the last is a "
                    "block of ",
                    kChannels, is_block(kernels, 8) ? " or 8" : "", " channels; found ",
                    input.sizes(), ". Add the dimension of the batch by .unsqueeze(0)");
  const int64_t channels = input.size(1) * std::max<int64_t>(block, 1);
  kConvolution.check_type("images", input);
  check_values("a weight", weight);
  TORCH_CHECK_VALUE(weight.dim() == 4 && weight.size(0) == kProducts &&
                        weight.size(2) == channels && weight.size(3) == kernels.panel,
                    kName, " wants a transformed weight of shape (", kProducts,
                    ", out_channels / ", kernels.panel, ", ", channels, ", ",
                    kernels.panel, "); found ", weight.sizes(),
                    ". Pack the weight for these images again");
  TORCH_CHECK_VALUE(channels % kChannels == 0, kName, " wants a multiple of ",
                    kChannels, " input channels; found ", channels,
                    ". Use torch.nn.functional.conv2d");
  TORCH_CHECK_VALUE(padding.size() == 2 && padding[0] >= 0 && padding[1] >= 0, kName,
                    " wants a padding of two numbers that are not negative; found ",
                    padding);
  const TiledConvolution conv{
      block,         input.size(0), channels,   weight.size(1) * kernels.panel,
      input.size(2), input.size(3), padding[0], padding[1]};
  TORCH_CHECK_VALUE(conv.out_height() > 0 && conv.out_width() > 0, kName,
                    " wants images of 3x3 or more with their padding; found ",
                    input.sizes(), " and a padding of ", padding,
                    ". Pad them, or leave the layer out");
  if (is_given(bias)) {
    check_values("a bias", *bias);
    TORCH_CHECK_VALUE(bias->sizes() == IntArrayRef{conv.out_channels}, kName,
                      " wants a bias of shape (", conv.out_channels, "); found ",
                      bias->sizes());
  }
  if (is_given(other)) {
    const std::vector<int64_t> sizes = sizes_of(conv);
    TORCH_CHECK_VALUE(other->sizes() == IntArrayRef(sizes), kName,
                      " wants what is added in the shape of the result, ",
                      IntArrayRef(sizes), "; found ", other->sizes(),
                      ". Expand it by .expand()");
    kConvolution.check_type("what is added", *other);
  }
  return conv;
}

const float* values_of(const MaybeTensor& tensor) {
  return is_given(tensor) ? tensor->const_data_ptr<float>() : nullptr;
}

Tensor on_cpu(const Tensor& input, const Tensor& weight, const MaybeTensor& bias,
              const MaybeTensor& other, IntArrayRef padding, bool relu) {
  const TiledConvolution conv = checked(input, weight, bias, other, padding);
  const Tensor result = at::empty(sizes_of(conv), input.options(), format_of(conv));
  if (result.numel() == 0) return result;
  const Tensor images = input.contiguous(format_of(conv));
  const Tensor added = is_given(other) ? other->contiguous(format_of(conv)) : Tensor();
  winograd_convolution(kConvolution.kernels(), conv, images.const_data_ptr<float>(),
                       weight.const_data_ptr<float>(),
                       {values_of(bias), values_of(added), relu},
                       result.mutable_data_ptr<float>());
  return result;
}

Tensor on_xpu(const Tensor& input, const Tensor& weight, const MaybeTensor& bias,
              const MaybeTensor& other, IntArrayRef padding, bool relu) {
  const at::Device device = input.is_xpu() ? input.device() : weight.device();
  static const auto op = kConvolution.handle();
  torch::jit::Stack stack{input, weight, bias, other, padding, relu};
  kConvolution.call_on_host(op, device, &stack);
  return stack.front().toTensor();
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "winograd_conv2d(Tensor input, Tensor weight, Tensor? bias, Tensor? other, "
      "int[] padding, bool relu) -> Tensor");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("winograd_conv2d", TORCH_FN(on_cpu));
}
TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("winograd_conv2d", TORCH_FN(on_xpu));
}

}  // namespace
}  // namespace xpurt
