// Average pooling and its gradients by oneDNN. oneDNN's max pooling is not used: it
// ignores NaN, which PyTorch's propagates.
#include <algorithm>

#include "onednn/device.h"
#include "onednn/rows.h"

namespace xpurt {
namespace {

using at::MemoryFormat;
using at::Tensor;
using dnnl::memory;
using Dims = memory::dims;

// One number per axis, from a list that may have one number for all.
Dims per_axis(const c10::IValue& list, size_t axes) {
  Dims found = list.toIntVector();
  if (found.size() == 1) found.resize(axes, found[0]);
  return found;
}

struct Windows {
  Dims image, made;  // sizes of a batch
  Dims kernel, stride, before, after;
  bool channels_last = false;
  dnnl::algorithm algorithm = dnnl::algorithm::pooling_avg_exclude_padding;

  Layout layout(const Dims& sizes) const {
    return {sizes, memory::data_type::f32, dense_strides(sizes, channels_last)};
  }
};

Dims batch_sizes(const Tensor& images, size_t axes) {
  Dims sizes = images.sizes().vec();
  if (sizes.size() == axes + 1) sizes.insert(sizes.begin(), 1);
  return sizes;
}

bool are_contiguous(const Tensor& a, const Tensor& b, MemoryFormat format) {
  return a.is_contiguous(format) && b.is_contiguous(format);
}

// nullopt if oneDNN would count elements differently, or if the images are not dense.
std::optional<Windows> windows_of(const PrimitiveCall& call, const Tensor& image,
                                  const Tensor& made) {
  const size_t axes = call.is_3d() ? 3 : 2;
  if (image.scalar_type() != c10::ScalarType::Float ||
      made.scalar_type() != c10::ScalarType::Float || image.numel() == 0 ||
      made.numel() == 0 || !call.value("divisor_override").isNone()) {
    return {};
  }
  Windows of{batch_sizes(image, axes), batch_sizes(made, axes)};
  if (!are_contiguous(image, made, MemoryFormat::Contiguous)) {
    const size_t dims = axes + 2;
    if (image.dim() != static_cast<int64_t>(dims) ||
        !are_contiguous(image, made, channels_last_of(image.dim()))) {
      return {};
    }
    of.channels_last = true;
  }
  of.kernel = per_axis(call.value("kernel_size"), axes);
  of.stride = per_axis(call.value("stride"), axes);
  if (of.stride.empty()) of.stride = of.kernel;
  of.before = of.after = per_axis(call.value("padding"), axes);
  const bool counts_padding = call.value("count_include_pad").toBool();
  if (counts_padding) of.algorithm = dnnl::algorithm::pooling_avg_include_padding;
  for (size_t d = 0; d < axes; ++d) {
    const int64_t end = (of.made[d + 2] - 1) * of.stride[d] + of.kernel[d];
    const int64_t wanted = end - of.image[d + 2] - of.before[d];
    // With ceil_mode a window may extend beyond the padding. PyTorch does not count
    // those elements.
    if (counts_padding && wanted > of.after[d]) return {};
    of.after[d] = std::max(of.after[d], wanted);
  }
  return of;
}

std::string key_of(const char* name, const Windows& of) {
  std::string key = name;
  for (const Dims* each : {&of.image, &of.made, &of.kernel, &of.stride, &of.before}) {
    add_to_key(&key, *each);
  }
  add_to_key(&key, of.channels_last);
  add_to_key(&key, of.algorithm);
  return key;
}

dnnl::pooling_forward::primitive_desc forward_descriptor(const dnnl::engine& engine,
                                                         const Windows& of) {
  const Dims adjacent(of.kernel.size(), 0);
  return {engine,
          dnnl::prop_kind::forward_inference,
          of.algorithm,
          of.layout(of.image),
          of.layout(of.made),
          of.stride,
          of.kernel,
          adjacent,
          of.before,
          of.after,
          onednn_attributes(),
          /*allow_empty=*/true};
}

}  // namespace

ReadyPrimitive onednn_average(const PrimitiveCall& call) {
  const Tensor made = call.tensor("out");
  const Tensor image = call.tensor("self").contiguous(made.suggest_memory_format());
  const auto of = windows_of(call, image, made);
  if (!of.has_value()) return {};
  OnednnDevice& device = call.onednn();
  const auto plan = device.plan(key_of("average", *of), [&]() -> OnednnPlan {
    const auto descriptor = forward_descriptor(device.engine(), *of);
    if (!is_of_use(descriptor)) return {};
    return make_plan(device.engine(), "onednn_average", descriptor,
                     {{DNNL_ARG_SRC, of->layout(of->image), Access::read},
                      {DNNL_ARG_DST, of->layout(of->made), Access::write}});
  });
  return ready_plan(plan, call, {image, made});
}

ReadyPrimitive onednn_average_backward(const PrimitiveCall& call) {
  const Tensor to_image = call.tensor("out");
  // The gradient of a sum is one number, expanded.
  const Tensor grad =
      call.tensor("grad_output").contiguous(to_image.suggest_memory_format());
  const auto of = windows_of(call, to_image, grad);
  if (!of.has_value()) return {};
  OnednnDevice& device = call.onednn();
  const auto plan = device.plan(key_of("average_backward", *of), [&]() -> OnednnPlan {
    const dnnl::engine& engine = device.engine();
    const auto hint = forward_descriptor(engine, *of);
    if (hint.get(true) == nullptr) return {};
    const Dims adjacent(of->kernel.size(), 0);
    const dnnl::pooling_backward::primitive_desc descriptor(
        engine, of->algorithm, of->layout(of->image), of->layout(of->made), of->stride,
        of->kernel, adjacent, of->before, of->after, hint, onednn_attributes(),
        /*allow_empty=*/true);
    if (!is_of_use(descriptor)) return {};
    return make_plan(engine, "onednn_average_backward", descriptor,
                     {{DNNL_ARG_DIFF_DST, of->layout(of->made), Access::read},
                      {DNNL_ARG_DIFF_SRC, of->layout(of->image), Access::write}});
  });
  return ready_plan(plan, call, {grad, to_image});
}

}  // namespace xpurt
