// Convolutions of compiled graphs with what follows them: by one primitive of oneDNN if
// the device has it, else by PyTorch's ops on xpu.
#include "onednn/fused_convolution.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/add.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "rows/fused_op.h"

namespace xpurt {
namespace {

using at::Tensor;

// The arguments of all ops of this file. See FusedConvolution.
constexpr const char* kConvolutionArguments =
    "(Tensor input, Tensor weight, Tensor? bias, Tensor? other, int[] weight_sizes, "
    "int[] stride, int[] padding, int[] dilation, int groups, str activation, "
    "float alpha, float beta, int input_format, int format)";

template <typename Result, Result (*function)(const FusedConvolution&)>
Result with_arguments(const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias,
                      const std::optional<Tensor>& other, at::IntArrayRef weight_sizes,
                      at::IntArrayRef stride, at::IntArrayRef padding,
                      at::IntArrayRef dilation, int64_t groups,
                      c10::string_view activation, double alpha, double beta,
                      int64_t input_format, int64_t format) {
  FusedConvolution of{{input,
                       weight,
                       bias.value_or(Tensor()),
                       other.value_or(Tensor()),
                       weight_sizes.vec(),
                       {std::string(activation), alpha, beta}},
                      stride.vec(),
                      padding.vec(),
                      dilation.vec(),
                      groups,
                      input_format,
                      format};
  of.check();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return function(of);
}

// (N, C, ...) of images in blocks of channels; other images as they are.
Tensor without_blocks(const Tensor& images, size_t axes) {
  if (images.dim() != static_cast<int64_t>(axes) + 3) return images;
  return images.movedim(-1, 2).flatten(1, 2);
}

Tensor in_format(const Tensor& images, int64_t format) {
  if (format > kChannelsLast) {
    return images.unflatten(1, {images.size(1) / format, format})
        .movedim(2, -1)
        .contiguous();
  }
  const Tensor made = empty_images(images.sizes(), format, images.options());
  return images.strides().equals(made.strides()) ? images : made.copy_(images);
}

Tensor convolve_by_ops(const FusedConvolution& of) {
  require_plain_weight(of, "convolution");
  const std::vector<int64_t> none(of.axes(), 0);
  const auto bias = of.bias.defined() ? std::optional(of.bias) : std::nullopt;
  Tensor result =
      at::convolution(without_blocks(of.input, of.axes()), of.weight, bias, of.stride,
                      of.padding, of.dilation, false, none, of.groups);
  if (of.other.defined()) result.add_(without_blocks(of.other, of.axes()));
  return in_format(activate(result, of.activation), of.format);
}

Tensor fused_convolution(const FusedConvolution& of) {
  of.check_addition();
  static OpRecord& record = op_record(
      c10::Dispatcher::singleton().findSchemaOrThrow("xpurt::fused_convolution", ""));
  return run_fused(of, record, &convolve_by_ops);
}

// The formats that the home device prefers for input and result; empty if it has no
// primitive.
std::vector<int64_t> convolution_formats(const FusedConvolution& of) {
  const Ordinal& devices = current_stream(of.input.device().index()).ordinal();
  const auto found = preferred_formats(devices.home_device(), of);
  if (!found) return {};
  return {found->first, found->second};
}

// The packed weight; without elements if the weight needs no packing.
Tensor pack_convolution_weight(const FusedConvolution& of) {
  Stream& stream = current_stream(of.input.device().index());
  const size_t home = stream.ordinal().home;
  if (!onednn_fuses(stream.ordinal().home_device(), of)) {
    return at::empty({0}, of.weight.options());
  }
  const Tensor packed = pack_weight(of, home, stream);
  return packed.defined() ? packed : at::empty({0}, of.weight.options());
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  const std::string arguments = kConvolutionArguments;
  m.def(("fused_convolution" + arguments + " -> Tensor").c_str());
  m.def(("pack_convolution_weight" + arguments + " -> Tensor").c_str());
  m.def(("convolution_formats" + arguments + " -> int[]").c_str());
}

TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("fused_convolution", &with_arguments<Tensor, &fused_convolution>);
  m.impl("pack_convolution_weight", &with_arguments<Tensor, &pack_convolution_weight>);
  m.impl("convolution_formats",
         &with_arguments<std::vector<int64_t>, &convolution_formats>);
}

}  // namespace
}  // namespace xpurt
