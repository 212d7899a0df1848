// The op xpurt::winograd_trained: convolutions of 3x3 with a weight as it is, in graphs
// of CPU tensors that are trained.
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "panels/lane_op.h"
#include "winograd/convolution.h"
#include "winograd/weight.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr LaneOp kTrainedOp{"xpurt::winograd_trained", "torch.nn.functional.conv2d"};
constexpr const char* kTrained = kTrainedOp.name;

TiledConvolution checked(const Kernels& kernels, const Tensor& input,
                         const Tensor& weight, at::IntArrayRef padding,
                         bool of_gradient) {
  TORCH_CHECK_TYPE(
      input.scalar_type() == at::kFloat && weight.scalar_type() == at::kFloat, kTrained,
      " wants images and a weight in float32; found ", input.scalar_type(), " and ",
      weight.scalar_type(), ". Convert them by .float()");
  TORCH_CHECK_VALUE(
      input.dim() == 4 && weight.dim() == 4 && weight.size(2) == 3 &&
          weight.size(3) == 3,
      kTrained, " wants images of 4 dimensions and a weight of 3x3; found ",
      input.sizes(), " and ", weight.sizes(), ". Use torch.nn.functional.conv2d");
  const int64_t out = weight.size(of_gradient ? 1 : 0);
  const int64_t in = weight.size(of_gradient ? 0 : 1);
  TORCH_CHECK_VALUE(
      input.size(1) == in && in % kChannels == 0 && out % kernels.panel == 0, kTrained,
      " wants a multiple of ", kChannels, " input channels and of ", kernels.panel,
      " output channels; found ", input.sizes(), " and a weight of ", weight.sizes(),
      ". Use torch.nn.functional.conv2d");
  TORCH_CHECK_VALUE(padding.size() == 2 && padding[0] >= 0 && padding[1] >= 0, kTrained,
                    " wants a padding of two numbers that are not negative; found ",
                    padding);
  const TiledConvolution conv{
      0, input.size(0), in, out, input.size(2), input.size(3), padding[0], padding[1]};
  TORCH_CHECK_VALUE(conv.out_height() > 0 && conv.out_width() > 0, kTrained,
                    " wants images of 3x3 or more with their padding; found ",
                    input.sizes(), " and a padding of ", padding);
  return conv;
}

// The result has the layout of the input: contiguous, or channels last.
Tensor winograd_trained(const Tensor& input, const Tensor& weight,
                        at::IntArrayRef padding, bool of_gradient) {
  const Kernels& kernels = kTrainedOp.kernels();
  const TiledConvolution conv = checked(kernels, input, weight, padding, of_gradient);
  const auto channels_last = at::MemoryFormat::ChannelsLast;
  const Tensor result =
      at::empty({conv.images, conv.out_channels, conv.out_height(), conv.out_width()},
                input.options(), channels_last);
  if (result.numel() != 0) {
    const Tensor images = input.contiguous(channels_last);
    const Tensor taps = weight.contiguous();
    const Tensor transformed =
        at::empty({kProducts, conv.out_channels, conv.in_channels}, input.options());
    transform_weight(kernels,
                     {taps.const_data_ptr<float>(), conv.out_channels, conv.in_channels,
                      of_gradient},
                     transformed.mutable_data_ptr<float>());
    winograd_convolution(kernels, conv, images.const_data_ptr<float>(),
                         transformed.const_data_ptr<float>(), {nullptr, nullptr, false},
                         result.mutable_data_ptr<float>());
  }
  return result.contiguous(input.suggest_memory_format());
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  m.def(
      "winograd_trained(Tensor input, Tensor weight, int[] padding, bool of_gradient) "
      "-> Tensor");
}
TORCH_LIBRARY_IMPL(xpurt, CPU, m) {
  m.impl("winograd_trained", TORCH_FN(winograd_trained));
}

}  // namespace
}  // namespace xpurt
