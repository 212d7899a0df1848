#include "onednn/convolution.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "onednn/device.h"

namespace xpurt {
namespace {

using at::MemoryFormat;
using at::Tensor;
using dnnl::memory;
using Dims = memory::dims;

struct Straight {
  using Output = dnnl::convolution_forward;
  using Input = dnnl::convolution_backward_data;
  using Weight = dnnl::convolution_backward_weights;
  static constexpr auto algorithm = dnnl::algorithm::convolution_direct;
};
struct Transposed {
  using Output = dnnl::deconvolution_forward;
  using Input = dnnl::deconvolution_backward_data;
  using Weight = dnnl::deconvolution_backward_weights;
  static constexpr auto algorithm = dnnl::algorithm::deconvolution_direct;
};

// A convolution as oneDNN describes it: the layouts of the caller's dense tensors, and
// the parameters of the primitives.
struct Description {
  explicit Description(const Convolution& of);

  // For a layout that the primitive may choose.
  Layout any(const Layout& layout) const {
    return {layout.get_dims(), type, memory::format_tag::any};
  }
  // Channels last is kept: blocked channels would have to be reordered both ways.
  Layout image(const Layout& layout) const {
    return channels_last ? layout : any(layout);
  }

  memory::data_type type;
  bool channels_last;
  Layout input, output, weight, weight_gradient, bias;
  Dims stride, dilation, before, after;
};

Layout weight_layout(const Convolution& of, memory::data_type type,
                     bool channels_last) {
  Dims sizes = of.weight.sizes().vec();
  Dims strides = dense_strides(sizes, channels_last);
  if (of.groups > 1) {
    sizes[0] /= of.groups;
    sizes.insert(sizes.begin(), of.groups);
    strides.insert(strides.begin(), strides[0] * sizes[1]);
  }
  if (of.transposed) {
    // In oneDNN the channels of the output come first.
    const size_t first = of.groups > 1 ? 1 : 0;
    std::swap(sizes[first], sizes[first + 1]);
    std::swap(strides[first], strides[first + 1]);
  }
  return {sizes, type, strides};
}

Description::Description(const Convolution& of)
    : type(onednn_type(of.input.scalar_type())),
      channels_last(of.memory_format() != MemoryFormat::Contiguous),
      weight(weight_layout(of, type, has_channels_last(of.weight))),
      weight_gradient(weight_layout(of, type, channels_last)),
      stride(of.stride),
      dilation(of.dilation),
      before(of.padding),
      after(of.padding) {
  const Dims sizes = of.input.sizes().vec(), made = of.output_sizes();
  input = {sizes, type, dense_strides(sizes, channels_last)};
  output = {made, type, dense_strides(made, channels_last)};
  bias = {{made[1]}, type, memory::format_tag::a};
  for (size_t d = 0; d < stride.size(); ++d) {
    --dilation[d];  // oneDNN counts the skipped elements
    if (of.transposed) after[d] -= of.output_padding[d];
  }
}

template <typename Kind>
typename Kind::Output::primitive_desc forward_descriptor(const dnnl::engine& engine,
                                                         const Description& d,
                                                         bool with_bias) {
  const auto use = dnnl::prop_kind::forward_training;
  const Layout input = d.image(d.input), weight = d.any(d.weight);
  const Layout output = d.image(d.output);
  using Made = typename Kind::Output::primitive_desc;
  if (!with_bias) {
    return Made(engine, use, Kind::algorithm, input, weight, output, d.stride,
                d.dilation, d.before, d.after, onednn_attributes(), true);
  }
  return Made(engine, use, Kind::algorithm, input, weight, d.bias, output, d.stride,
              d.dilation, d.before, d.after, onednn_attributes(), true);
}

template <typename Kind>
OnednnPlan output_plan(const dnnl::engine& engine, const Description& d,
                       bool with_bias) {
  const auto made = forward_descriptor<Kind>(engine, d, with_bias);
  if (!is_of_use(made)) return {};
  std::vector<OnednnPlan::Argument> arguments{
      {DNNL_ARG_SRC, d.input, Access::read},
      {DNNL_ARG_WEIGHTS, d.weight, Access::read},
      {DNNL_ARG_DST, d.output, Access::write}};
  if (with_bias) arguments.push_back({DNNL_ARG_BIAS, d.bias, Access::read});
  return make_plan(engine, "onednn_convolution", made, std::move(arguments));
}

template <typename Kind>
OnednnPlan input_plan(const dnnl::engine& engine, const Description& d) {
  const auto hint = forward_descriptor<Kind>(engine, d, false);
  if (hint.get(true) == nullptr) return {};
  const typename Kind::Input::primitive_desc made(
      engine, Kind::algorithm, d.image(d.input), d.any(d.weight), d.image(d.output),
      d.stride, d.dilation, d.before, d.after, hint, onednn_attributes(), true);
  if (!is_of_use(made)) return {};
  return make_plan(engine, "onednn_convolution_backward_data", made,
                   {{DNNL_ARG_DIFF_DST, d.output, Access::read},
                    {DNNL_ARG_WEIGHTS, d.weight, Access::read},
                    {DNNL_ARG_DIFF_SRC, d.input, Access::write}});
}

template <typename Kind>
OnednnPlan weight_plan(const dnnl::engine& engine, const Description& d,
                       bool with_bias) {
  const auto hint = forward_descriptor<Kind>(engine, d, with_bias);
  if (hint.get(true) == nullptr) return {};
  using Made = typename Kind::Weight::primitive_desc;
  const Layout input = d.image(d.input), weight = d.any(d.weight);
  const Layout output = d.image(d.output);
  const Made made =
      with_bias ? Made(engine, Kind::algorithm, input, weight, d.bias, output, d.stride,
                       d.dilation, d.before, d.after, hint, onednn_attributes(), true)
                : Made(engine, Kind::algorithm, input, weight, output, d.stride,
                       d.dilation, d.before, d.after, hint, onednn_attributes(), true);
  if (!is_of_use(made)) return {};
  std::vector<OnednnPlan::Argument> arguments{
      {DNNL_ARG_SRC, d.input, Access::read},
      {DNNL_ARG_DIFF_DST, d.output, Access::read},
      {DNNL_ARG_DIFF_WEIGHTS, d.weight_gradient, Access::write}};
  if (with_bias) arguments.push_back({DNNL_ARG_DIFF_BIAS, d.bias, Access::write});
  return make_plan(engine, "onednn_convolution_backward_weights", made,
                   std::move(arguments));
}

template <typename Kind>
OnednnPlan make_part(const dnnl::engine& engine, const Convolution& convolution,
                     ConvolutionPart part, bool with_bias) {
  const Description description(convolution);
  switch (part) {
    case ConvolutionPart::output:
      return output_plan<Kind>(engine, description, with_bias);
    case ConvolutionPart::input_gradient:
      return input_plan<Kind>(engine, description);
    default:
      return weight_plan<Kind>(engine, description, with_bias);
  }
}

std::shared_ptr<const OnednnPlan> plan_of(OnednnDevice& device,
                                          const Convolution& convolution,
                                          ConvolutionPart part, bool with_bias) {
  std::string key = "convolution";
  add_to_key(&key, part);
  add_to_key(&key, with_bias);
  add_to_key(&key, convolution.input.scalar_type());
  add_to_key(&key, convolution.memory_format());
  add_to_key(&key, has_channels_last(convolution.weight));
  add_to_key(&key, convolution.input.sizes());
  add_to_key(&key, convolution.weight.sizes());
  add_to_key(&key, convolution.stride);
  add_to_key(&key, convolution.padding);
  add_to_key(&key, convolution.dilation);
  add_to_key(&key, convolution.transposed);
  if (convolution.transposed) add_to_key(&key, convolution.output_padding);
  add_to_key(&key, convolution.groups);
  return device.plan(std::move(key), [&] {
    const dnnl::engine& engine = device.engine();
    return convolution.transposed
               ? make_part<Transposed>(engine, convolution, part, with_bias)
               : make_part<Straight>(engine, convolution, part, with_bias);
  });
}

// Weights are reordered anyway, so both dense formats are accepted.
Tensor dense_weight(const Tensor& weight) {
  return has_channels_last(weight) ? weight : weight.contiguous();
}

template <typename Body>
auto explained(const Convolution& convolution, const Body& body) {
  return onednn_checked(body, "convolve ", convolution.input.sizes(), " with ",
                        convolution.weight.sizes(), " (",
                        convolution.input.scalar_type(), ")");
}

}  // namespace

bool Convolution::is_sound() const {
  const auto axes = static_cast<size_t>(this->axes());
  if (axes < 1 || axes > 3 || weight.dim() != input.dim() || groups < 1) return false;
  for (const auto* each : {&stride, &padding, &dilation, &output_padding}) {
    if (each->size() != axes) return false;
  }
  const int64_t inward = transposed ? weight.size(0) : weight.size(1) * groups;
  if (inward != input.size(1) || weight.size(0) % groups != 0) return false;
  if (input.numel() == 0 || weight.numel() == 0) return false;
  for (size_t d = 0; d < axes; ++d) {
    if (stride[d] < 1 || dilation[d] < 1 || padding[d] < 0) return false;
  }
  const std::vector<int64_t> made = output_sizes();
  if (std::any_of(made.begin(), made.end(), [](int64_t size) { return size < 1; })) {
    return false;
  }
  return !bias.defined() || (bias.dim() == 1 && bias.size(0) == made[1]);
}

std::vector<int64_t> Convolution::output_sizes() const {
  std::vector<int64_t> sizes{input.size(0),
                             transposed ? weight.size(1) * groups : weight.size(0)};
  for (int64_t d = 0; d < axes(); ++d) {
    const int64_t window = dilation[d] * (weight.size(d + 2) - 1) + 1;
    const int64_t size = input.size(d + 2);
    sizes.push_back(transposed ? (size - 1) * stride[d] - 2 * padding[d] + window +
                                     output_padding[d]
                               : (size + 2 * padding[d] - window) / stride[d] + 1);
  }
  return sizes;
}

int64_t Convolution::multiply_adds() const {
  // Each number of the weight is multiplied once per window of each image; if
  // transposed, once per element of each image.
  int64_t places = input.size(0);
  const std::vector<int64_t> made = output_sizes();
  for (int64_t d = 2; d < input.dim(); ++d) {
    places *= transposed ? input.size(d) : made[d];
  }
  return weight.numel() * places;
}

MemoryFormat Convolution::memory_format() const {
  const MemoryFormat of_input = input.suggest_memory_format();
  return of_input != MemoryFormat::Contiguous ? of_input
                                              : weight.suggest_memory_format();
}

bool onednn_convolves(const PhysicalDevice& device, const Convolution& convolution,
                      ConvolutionPart part, bool with_bias) {
  OnednnDevice& onednn = OnednnDevice::of(device);
  const auto type = convolution.input.scalar_type();
  if (!c10::isFloatingType(type) || !onednn.multiplies(type)) return false;
  return explained(convolution, [&] {
    return plan_of(onednn, convolution, part, with_bias)->possible;
  });
}

Tensor empty_output(const Convolution& convolution) {
  return at::empty(convolution.output_sizes(), convolution.input.options(),
                   convolution.memory_format());
}

void onednn_convolution(const Convolution& convolution, const Tensor& output,
                        size_t position, Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  explained(convolution, [&] {
    const MemoryFormat format = convolution.memory_format();
    const bool with_bias = convolution.bias.defined();
    const auto plan = plan_of(device, convolution, ConvolutionPart::output, with_bias);
    c10::SmallVector<Tensor, 4> tensors{convolution.input.contiguous(format),
                                        dense_weight(convolution.weight), output};
    if (with_bias) tensors.push_back(convolution.bias.contiguous());
    run_plan(*plan, device, stream, position, tensors);
    return true;
  });
}

ConvolutionGradients empty_gradients(const Convolution& convolution,
                                     std::array<bool, 3> wanted) {
  const MemoryFormat format = convolution.memory_format();
  const Tensor& weight = convolution.weight;
  const auto options = convolution.input.options();
  const int64_t channels =
      convolution.transposed ? weight.size(1) * convolution.groups : weight.size(0);
  ConvolutionGradients made;
  if (wanted[0]) made[0] = at::empty(convolution.input.sizes(), options, format);
  if (wanted[1]) made[1] = at::empty(weight.sizes(), options, format);
  if (wanted[2]) made[2] = at::empty({channels}, options);
  return made;
}

void onednn_convolution_gradients(const Convolution& convolution, const Tensor& grad,
                                  const ConvolutionGradients& gradients,
                                  size_t position, Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  explained(convolution, [&] {
    const MemoryFormat format = convolution.memory_format();
    const auto& [of_input, of_weight, of_bias] = gradients;
    const Tensor incoming = grad.contiguous(format);
    std::vector<ReorderedInput> reordered;
    if (of_input.defined()) {
      const auto plan =
          plan_of(device, convolution, ConvolutionPart::input_gradient, false);
      run_plan(*plan, device, stream, position,
               {incoming, dense_weight(convolution.weight), of_input}, &reordered);
    }
    if (of_weight.defined()) {
      const auto plan = plan_of(device, convolution, ConvolutionPart::weight_gradient,
                                of_bias.defined());
      c10::SmallVector<Tensor, 4> tensors{convolution.input.contiguous(format),
                                          incoming, of_weight};
      if (of_bias.defined()) tensors.push_back(of_bias);
      run_plan(*plan, device, stream, position, tensors, &reordered);
    } else if (of_bias.defined()) {
      std::vector<int64_t> others{0};
      for (int64_t d = 2; d < incoming.dim(); ++d) others.push_back(d);
      Tensor sum = of_bias;
      at::sum_out(sum, incoming, others);
    }
  });
}

}  // namespace xpurt
