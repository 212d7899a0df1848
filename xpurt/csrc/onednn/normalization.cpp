// Batch and layer normalization by oneDNN. oneDNN uses the variance, and PyTorch keeps
// 1 / sqrt(variance + eps): steps of the rows convert between the two.
#include "onednn/device.h"
#include "onednn/rows.h"

namespace xpurt {
namespace {

using at::Tensor;
using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;

constexpr auto kFloat = memory::data_type::f32;

// Whether all defined tensors are float32. With half precision PyTorch mixes types.
bool are_float(std::initializer_list<Tensor> tensors) {
  return std::ranges::all_of(tensors, [](const Tensor& each) {
    return !each.defined() || each.scalar_type() == c10::ScalarType::Float;
  });
}

// The oneDNN layouts of the normalized tensor, its moments and its scale.
struct Normalized {
  Layout values, moments, scale;
  std::string key;

  Normalized(const char* name, const memory::dims& sizes, const memory::dims& strides,
             const memory::dims& of_moments, int64_t of_scale)
      : values(sizes, kFloat, strides),
        moments(of_moments, kFloat, memory::format_tag::a),
        scale({of_scale}, kFloat, memory::format_tag::a),
        key(name) {
    add_to_key(&key, sizes);
    add_to_key(&key, strides);
  }
};

// The layouts for the images of a batch; nullopt if they are not dense or have too many
// dimensions.
std::optional<Normalized> as_images(const char* name, const Tensor& images) {
  const memory::dims sizes = images.sizes().vec();
  if (sizes.size() < 2 || sizes.size() > 5 || images.numel() == 0) return {};
  const bool last = !images.is_contiguous();
  if (last && !has_channels_last(images)) return {};
  return Normalized(name, sizes, dense_strides(sizes, last), {sizes[1]}, sizes[1]);
}

std::optional<Normalized> as_lines(const char* name, const Tensor& values,
                                   const Tensor& mean) {
  // oneDNN adds up a line in float, without blocks: over 1e6 elements 2e-6 is lost.
  constexpr int64_t kLongest = 1 << 15;
  if (values.numel() == 0 || !values.is_contiguous()) return {};
  const int64_t lines = mean.numel(), length = values.numel() / lines;
  if (length > kLongest) return {};
  return Normalized(name, {lines, length}, {length, 1}, {lines}, length);
}

struct Forward {
  Tensor input, output, mean, variance, weight, bias;
  double eps;
  bool training;  // the moments are computed, not given
};

template <typename Primitive>
ReadyPrimitive forward(const PrimitiveCall& call, const char* name, Forward of,
                       Normalized like) {
  auto flags = normalization_flags::none;
  if (!of.training) flags |= normalization_flags::use_global_stats;
  if (of.weight.defined()) flags |= normalization_flags::use_scale;
  if (of.bias.defined()) flags |= normalization_flags::use_shift;
  const auto eps = static_cast<float>(of.eps);
  add_to_key(&like.key, flags);
  add_to_key(&like.key, eps);
  OnednnDevice& device = call.onednn();
  const auto plan = device.plan(like.key, [&]() -> OnednnPlan {
    const auto use =
        of.training ? prop_kind::forward_training : prop_kind::forward_inference;
    const typename Primitive::primitive_desc made(
        device.engine(), use, like.values, like.values, eps, flags, onednn_attributes(),
        /*allow_empty=*/true);
    if (!is_of_use(made)) return {};
    const Access moments = of.training ? Access::write : Access::read;
    std::vector<OnednnPlan::Argument> arguments{
        {DNNL_ARG_SRC, like.values, Access::read},
        {DNNL_ARG_DST, like.values, Access::write},
        {DNNL_ARG_MEAN, like.moments, moments},
        {DNNL_ARG_VARIANCE, like.moments, moments}};
    if (of.weight.defined()) {
      arguments.push_back({DNNL_ARG_SCALE, like.scale, Access::read});
    }
    if (of.bias.defined()) {
      arguments.push_back({DNNL_ARG_SHIFT, like.scale, Access::read});
    }
    return make_plan(device.engine(), name, made, std::move(arguments));
  });
  std::vector<Tensor> tensors{of.input, of.output, of.mean, of.variance};
  for (const Tensor& each : {of.weight, of.bias}) {
    if (each.defined()) tensors.push_back(each);
  }
  return ready_plan(plan, call, std::move(tensors));
}

struct Backward {
  Tensor grad, input, mean, variance, weight;
  Tensor to_input, to_weight, to_bias;  // undefined: not wanted
  bool training = true;                 // the moments depend on the input
};

template <typename Primitive, typename Hint>
ReadyPrimitive backward(const PrimitiveCall& call, const char* name, Backward of,
                        Normalized like) {
  const bool scales = of.weight.defined(), shifts = of.to_bias.defined();
  // The primitives always write the gradients of the input and of the scale.
  if (!of.to_input.defined() || of.to_weight.defined() != scales) return {};
  auto flags = normalization_flags::none;
  if (!of.training) flags |= normalization_flags::use_global_stats;
  if (scales) flags |= normalization_flags::use_scale;
  if (shifts) flags |= normalization_flags::use_shift;
  const auto use = scales || shifts ? prop_kind::backward : prop_kind::backward_data;
  add_to_key(&like.key, flags);
  add_to_key(&like.key, use);
  OnednnDevice& device = call.onednn();
  const auto plan = device.plan(like.key, [&]() -> OnednnPlan {
    constexpr float kNoEps = 0;
    const dnnl::engine& engine = device.engine();
    const typename Hint::primitive_desc hint(engine, prop_kind::forward_training,
                                             like.values, like.values, kNoEps, flags,
                                             onednn_attributes(), /*allow_empty=*/true);
    if (hint.get(true) == nullptr) return {};
    const typename Primitive::primitive_desc made(
        engine, use, like.values, like.values, like.values, kNoEps, flags, hint,
        onednn_attributes(), /*allow_empty=*/true);
    if (!is_of_use(made)) return {};
    std::vector<OnednnPlan::Argument> arguments{
        {DNNL_ARG_DIFF_DST, like.values, Access::read},
        {DNNL_ARG_SRC, like.values, Access::read},
        {DNNL_ARG_MEAN, like.moments, Access::read},
        {DNNL_ARG_VARIANCE, like.moments, Access::read},
        {DNNL_ARG_DIFF_SRC, like.values, Access::write}};
    const auto add = [&](int role, bool wanted, Access access) {
      if (wanted) arguments.push_back({role, like.scale, access});
    };
    add(DNNL_ARG_SCALE, scales, Access::read);
    add(DNNL_ARG_DIFF_SCALE, scales, Access::write);
    add(DNNL_ARG_DIFF_SHIFT, shifts, Access::write);
    return make_plan(engine, name, made, std::move(arguments));
  });
  std::vector<Tensor> tensors{of.grad, of.input, of.mean, of.variance, of.to_input};
  for (const Tensor& each : {of.weight, of.to_weight, of.to_bias}) {
    if (each.defined()) tensors.push_back(each);
  }
  return ready_plan(plan, call, std::move(tensors));
}

Backward backward_of(const PrimitiveCall& call) {
  return {call.tensor("grad_out"),  call.tensor("input"),  call.tensor("means"),
          call.tensor("variances"), call.tensor("weight"), call.tensor("out0"),
          call.tensor("out1"),      call.tensor("out2")};
}

}  // namespace

ReadyPrimitive onednn_batch_norm(const PrimitiveCall& call) {
  const bool training = call.value("training").toBool();
  const Forward of{
      call.tensor("input"),
      call.tensor("out0"),
      call.tensor(training ? "out1" : "running_mean"),
      call.tensor(training ? "variances" : "running_var"),
      call.tensor("weight"),
      call.tensor("bias"),
      call.value("eps").toDouble(),
      training,
  };
  if (!of.mean.defined() || !of.variance.defined() || !of.mean.is_contiguous() ||
      !of.variance.is_contiguous() ||
      !are_float({of.input, of.mean, of.variance, of.weight, of.bias})) {
    return {};
  }
  auto like = as_images("batch_norm", of.input);
  if (!like.has_value()) return {};
  return forward<dnnl::batch_normalization_forward>(call, "onednn_batch_norm", of,
                                                    std::move(*like));
}

ReadyPrimitive onednn_batch_norm_backward(const PrimitiveCall& call) {
  Backward of = backward_of(call);
  of.training = call.value("train").toBool();
  if (!are_float({of.grad, of.input, of.weight, of.to_weight, of.to_bias,
                  call.tensor("save_mean"), call.tensor("running_mean")})) {
    return {};
  }
  auto like = as_images("batch_norm_backward", of.input);
  if (!like.has_value()) return {};
  return backward<dnnl::batch_normalization_backward,
                  dnnl::batch_normalization_forward>(call, "onednn_batch_norm_backward",
                                                     of, std::move(*like));
}

ReadyPrimitive onednn_layer_norm(const PrimitiveCall& call) {
  const Forward of{
      call.tensor("input"),         call.tensor("out0"),
      call.tensor("out1"),          call.tensor("variances"),
      call.tensor("weight"),        call.tensor("bias"),
      call.value("eps").toDouble(), true,
  };
  if (!are_float({of.input, of.output, of.mean, of.weight, of.bias})) return {};
  auto like = as_lines("layer_norm", of.input, of.mean);
  if (!like.has_value()) return {};
  return forward<dnnl::layer_normalization_forward>(call, "onednn_layer_norm", of,
                                                    std::move(*like));
}

ReadyPrimitive onednn_layer_norm_backward(const PrimitiveCall& call) {
  Backward of = backward_of(call);
  of.mean = call.tensor("mean");
  if (!are_float({of.grad, of.input, of.mean, of.weight, of.to_input, of.to_weight,
                  of.to_bias})) {
    return {};
  }
  auto like = as_lines("layer_norm_backward", of.input, of.mean);
  if (!like.has_value()) return {};
  return backward<dnnl::layer_normalization_backward,
                  dnnl::layer_normalization_forward>(call, "onednn_layer_norm_backward",
                                                     of, std::move(*like));
}

}  // namespace xpurt
