#include "onednn/fused_convolution.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <string_view>

#include "onednn/device.h"
#include "onednn/fused_plan.h"

namespace xpurt {
namespace {

using at::Tensor;
using dnnl::memory;
using Dims = memory::dims;

// The layout of images with `block` adjacent channels; strides would not describe it.
Layout blocked_layout(const Dims& sizes, memory::data_type type, int64_t block) {
  using Tag = memory::format_tag;
  constexpr Tag kOf16[] = {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c};
  constexpr Tag kOf8[] = {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c};
  constexpr Tag kOf4[] = {Tag::nCw4c, Tag::nChw4c, Tag::nCdhw4c};
  const size_t axes = sizes.size() - 2;
  switch (block) {
    case 16:
      return {sizes, type, kOf16[axes - 1]};
    case 8:
      return {sizes, type, kOf8[axes - 1]};
    case 4:
      return {sizes, type, kOf4[axes - 1]};
    default:
      TORCH_CHECK_VALUE(false, "images have 4, 8 or 16 adjacent channels; found ",
                        block);
  }
}

Layout image_layout(const Dims& sizes, memory::data_type type, int64_t format) {
  if (format > kChannelsLast) return blocked_layout(sizes, type, format);
  return {sizes, type, dense_strides(sizes, format == kChannelsLast)};
}

int64_t format_of(const Layout& layout) {
  if (layout.get_inner_nblks() == 1 && layout.get_inner_idxs()[0] == 1 &&
      layout.get_padded_dims() == layout.get_dims()) {
    return layout.get_inner_blks()[0];
  }
  const bool last = layout.get_inner_nblks() == 0 && layout.get_strides()[1] == 1;
  return last ? kChannelsLast : kContiguous;
}

struct FusedDescription {
  explicit FusedDescription(const FusedConvolution& of)
      : type(onednn_type(of.input.scalar_type())),
        input(image_layout(of.input_sizes(), type, of.input_format)),
        output(image_layout(of.output_sizes(), type, of.format)),
        weight_sizes(of.weight_sizes),
        stride(of.stride),
        dilation(of.dilation),
        padding(of.padding) {
    for (int64_t& each : dilation) --each;  // oneDNN counts the skipped elements
    Dims strides =
        dense_strides(of.weight_sizes, !of.is_packed() && has_channels_last(of.weight));
    if (of.groups > 1) {
      weight_sizes[0] /= of.groups;
      strides.insert(strides.begin(), strides[0] * weight_sizes[0]);
      weight_sizes.insert(weight_sizes.begin(), of.groups);
    }
    weight = {weight_sizes, type, strides};
    if (of.bias.defined()) bias = {{of.weight_sizes[0]}, type, memory::format_tag::a};
  }

  Layout any(const Layout& layout) const {
    return {layout.get_dims(), type, memory::format_tag::any};
  }
  dnnl::convolution_forward::primitive_desc made(
      const dnnl::engine& engine, const Layout& from, const Layout& to,
      const dnnl::primitive_attr& attributes) const {
    constexpr auto kUse = dnnl::prop_kind::forward_inference;
    constexpr auto kHow = dnnl::algorithm::convolution_direct;
    if (bias.get_ndims() == 0) {
      return {engine, kUse,     kHow,    from,    any(weight), to,
              stride, dilation, padding, padding, attributes,  true};
    }
    return {engine, kUse,     kHow,    from,    any(weight), bias, to,
            stride, dilation, padding, padding, attributes,  true};
  }

  memory::data_type type;
  Layout input, output, weight, bias;
  Dims weight_sizes, stride, dilation, padding;
};

OnednnPlan make_fused(const dnnl::engine& engine, const FusedConvolution& of) {
  const FusedDescription d(of);
  const auto made = d.made(engine, d.input, d.output, fused_attributes(of, d.output));
  return make_fused_plan(engine, "onednn_fused_convolution", made, of,
                         {d.input, d.weight, d.output, d.bias});
}

std::shared_ptr<const OnednnPlan> plan_of(OnednnDevice& device,
                                          const FusedConvolution& of) {
  const bool channels_last = !of.is_packed() && has_channels_last(of.weight);
  std::string key = fused_key("fused_convolution", of, channels_last);
  add_to_key(&key, of.input_format);
  add_to_key(&key, of.format);
  add_to_key(&key, of.input_sizes());
  add_to_key(&key, of.stride);
  add_to_key(&key, of.padding);
  add_to_key(&key, of.dilation);
  add_to_key(&key, of.groups);
  return device.plan(std::move(key), [&] { return make_fused(device.engine(), of); });
}

Tensor dense_weight(const FusedConvolution& of) {
  const bool dense = of.is_packed() || has_channels_last(of.weight);
  return dense ? of.weight : of.weight.contiguous();
}

// The tensor, dense in its format.
Tensor dense(const Tensor& images, size_t axes, int64_t format) {
  return format == kChannelsLast && axes > 1
             ? images.contiguous(channels_last_of(images.dim()))
             : images.contiguous();
}

template <typename Body>
auto explained(const FusedConvolution& of, const Body& body) {
  return onednn_checked(body, "convolve ", of.input.sizes(), " with ",
                        at::IntArrayRef(of.weight_sizes), " (", of.input.scalar_type(),
                        ", ", of.activation.name, ")");
}

bool supports(const PhysicalDevice& device, const FusedConvolution& of) {
  const auto type = of.input.scalar_type();
  return c10::isFloatingType(type) && of.axes() <= 3 &&
         OnednnDevice::of(device).multiplies(type);
}

// Of images in the format, as the tensor that holds them.
std::vector<int64_t> sizes_in(int64_t format, at::IntArrayRef images) {
  std::vector<int64_t> sizes = images.vec();
  if (format > kChannelsLast) {
    sizes[1] /= format;
    sizes.push_back(format);
  }
  return sizes;
}

}  // namespace

bool FusedConvolution::is_blocked() const {
  return input_format > kChannelsLast;
}

std::vector<int64_t> FusedConvolution::input_sizes() const {
  std::vector<int64_t> sizes = input.sizes().vec();
  if (is_blocked()) {
    sizes[1] *= sizes.back();
    sizes.pop_back();
  }
  return sizes;
}

std::vector<int64_t> FusedConvolution::output_sizes() const {
  const std::vector<int64_t> from = input_sizes();
  std::vector<int64_t> sizes{from[0], weight_sizes[0]};
  for (size_t d = 0; d < axes(); ++d) {
    const int64_t window = dilation[d] * (weight_sizes[d + 2] - 1) + 1;
    sizes.push_back((from[d + 2] + 2 * padding[d] - window) / stride[d] + 1);
  }
  return sizes;
}

int64_t FusedConvolution::multiply_adds() const {
  return c10::multiply_integers(output_sizes()) * c10::multiply_integers(weight_sizes) /
         weight_sizes[0];
}

Tensor FusedConvolution::empty_output() const {
  return empty_images(output_sizes(), format, input.options());
}

void FusedConvolution::check() const {
  TORCH_CHECK_VALUE(weight_sizes.size() > 2, "a convolution has at least one axis");
  for (const auto* each : {&stride, &padding, &dilation}) {
    TORCH_CHECK_VALUE(each->size() == axes(), "stride, padding and dilation have ",
                      axes(), " numbers; found ", each->size());
  }
  const bool fits = input.dim() == static_cast<int64_t>(axes()) + 2 + is_blocked() &&
                    (!is_blocked() || input.size(-1) == input_format) &&
                    weight_sizes[1] * groups == input_sizes()[1];
  TORCH_CHECK_VALUE(fits, "the weight ", at::IntArrayRef(weight_sizes), " in ", groups,
                    " groups does not fit the input ", input.sizes(), " of format ",
                    input_format);
  const auto made = output_sizes();
  for (const int64_t each : made) {
    TORCH_CHECK_VALUE(each > 0, "the result ", at::IntArrayRef(made), " is empty");
  }
  check_sizes(made[1]);
}

void FusedConvolution::check_addition() const {
  check_other(sizes_in(format, output_sizes()));
}

Tensor empty_images(at::IntArrayRef sizes, int64_t format,
                    const at::TensorOptions& options) {
  if (format == kContiguous || sizes.size() == 3) return at::empty(sizes, options);
  if (format == kChannelsLast) {
    return at::empty(sizes, options, channels_last_of(sizes.size()));
  }
  return at::empty(sizes_in(format, sizes), options);
}

bool onednn_fuses(const PhysicalDevice& device, const FusedConvolution& of) {
  return supports(device, of) &&
         explained(of, [&] { return plan_of(OnednnDevice::of(device), of)->possible; });
}

// Note [The fastest format of images]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A primitive that may choose both formats chooses channels last. That is the fastest
// only where matrix instructions (AMX) compute it: on an AMD EPYC with AVX-512 the
// convolutions of a ResNet-18 take 156 ms in channels last and 142 ms in blocks
// (float32; bfloat16: 76 and 72 ms; 2026-11-24, processor time of one thread).
std::optional<Formats> preferred_formats(const PhysicalDevice& device,
                                         const FusedConvolution& of) {
  if (!supports(device, of)) return std::nullopt;
  return explained(of, [&]() -> std::optional<Formats> {
    const FusedDescription d(of);
    const dnnl::engine& engine = OnednnDevice::of(device).engine();
    const auto chosen =
        d.made(engine, d.any(d.input), d.any(d.output), onednn_attributes());
    if (!is_of_use(chosen)) return std::nullopt;
    const Formats formats{format_of(chosen.src_desc()), format_of(chosen.dst_desc())};
    if (std::string_view(chosen.impl_info_str()).find("amx") != std::string_view::npos)
      return formats;
    const auto sizes = of.input_sizes(), made = of.output_sizes();
    for (const int64_t block : {16, 8}) {
      // Images of a few channels, as those of a camera, stay planes.
      const int64_t from = sizes[1] < block ? kContiguous : block;
      if ((from == block && sizes[1] % block != 0) || made[1] % block != 0) continue;
      const auto blocked =
          d.made(engine, image_layout(sizes, d.type, from),
                 image_layout(made, d.type, block), onednn_attributes());
      if (is_of_use(blocked)) return Formats{from, block};
    }
    return formats;
  });
}

Tensor pack_weight(const FusedConvolution& of, size_t position, Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  return explained(of, [&] {
    const auto plan = plan_of(device, of);
    return reordered_argument(*plan, kFusedWeight, dense_weight(of), device, stream,
                              position);
  });
}

void onednn_fused(const FusedConvolution& of, const Tensor& output, size_t position,
                  Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  explained(of, [&] {
    const Tensor other =
        of.other.defined() ? dense(of.other, of.axes(), of.format) : of.other;
    const auto tensors = fused_tensors(of, dense(of.input, of.axes(), of.input_format),
                                       dense_weight(of), output, other);
    run_plan(*plan_of(device, of), device, stream, position, tensors);
    return true;
  });
}

}  // namespace xpurt
