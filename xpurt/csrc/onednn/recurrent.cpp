#include "onednn/recurrent.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include "onednn/device.h"

namespace xpurt {
namespace {

using at::Tensor;
using dnnl::memory;
using Tag = memory::format_tag;
using Tensors = std::vector<Tensor>;

// Weights are reordered first, which does not pay with fewer steps.
constexpr int64_t kMinSteps = 4;

// An LSTM has one bias per gate; a GRU has two for the new gate.
constexpr int64_t kBiases = 4;

enum class RecurrentPart { inference, training, gradients };

RecurrentPart forward_part(bool train) {
  return train ? RecurrentPart::training : RecurrentPart::inference;
}

// The layouts of the caller's dense tensors.
struct RecurrentLayouts {
  explicit RecurrentLayouts(const RecurrentLayer& of)
      : input({of.steps(), of.batch(), of.input.size(2)}, type, Tag::tnc),
        output({of.steps(), of.batch(), of.hidden_size()}, type, Tag::tnc),
        state({1, 1, of.batch(), of.hidden_size()}, type, Tag::ldnc),
        weight_ih({1, 1, of.input.size(2), of.gates(), of.hidden_size()}, type,
                  Tag::ldgoi),
        weight_hh({1, 1, of.hidden_size(), of.gates(), of.hidden_size()}, type,
                  Tag::ldgoi),
        bias({1, 1, kBiases, of.hidden_size()}, type, Tag::ldgo) {}

  static constexpr auto type = memory::data_type::f32;
  Layout input, output, state, weight_ih, weight_hh, bias;
};

// The descriptor of the primitive for a layer, or for its gradients if `forward` is
// given; empty if oneDNN has none. The GRU is oneDNN's "linear before reset" variant.
// The C API is used since the C++ API has no flags: without kOverwrite, gradients of
// weights would be added to the existing values.
dnnl::primitive_desc descriptor_of(const dnnl::engine& engine,
                                   const RecurrentLayer& layer, RecurrentPart part,
                                   const dnnl::primitive_desc& forward = {}) {
  const RecurrentLayouts like(layer);
  // The primitive chooses the layouts of weights.
  const Layout any_ih(like.weight_ih.get_dims(), like.type, Tag::any);
  const Layout any_hh(like.weight_hh.get_dims(), like.type, Tag::any);
  const auto in = like.input.get(), out = like.output.get(), state = like.state.get();
  const auto ih = any_ih.get(), hh = any_hh.get(), bias = like.bias.get();
  const auto use =
      part == RecurrentPart::inference ? dnnl_forward_inference : dnnl_forward_training;
  const auto direction =
      layer.reverse ? dnnl_unidirectional_right2left : dnnl_unidirectional_left2right;
  constexpr unsigned kNone = dnnl_rnn_flags_undef;
  constexpr unsigned kOverwrite = dnnl_rnn_flags_diff_weights_overwrite;
  const dnnl::primitive_attr attributes = onednn_attributes();
  const auto hint = forward.get(/*allow_empty=*/true);
  const auto attr = attributes.get();
  dnnl_primitive_desc_t made = nullptr;
  dnnl_status_t status = dnnl_success;
  if (hint == nullptr && layer.lstm()) {
    status = dnnl_lstm_forward_primitive_desc_create(
        &made, engine.get(), use, direction, in, state, state, ih, hh, nullptr, nullptr,
        bias, out, state, state, kNone, attr);
  } else if (hint == nullptr) {
    status = dnnl_lbr_gru_forward_primitive_desc_create(&made, engine.get(), use,
                                                        direction, in, state, ih, hh,
                                                        bias, out, state, kNone, attr);
  } else if (layer.lstm()) {
    status = dnnl_lstm_backward_primitive_desc_create(
        &made, engine.get(), dnnl_backward, direction, in, state, state, ih, hh,
        nullptr, nullptr, bias, out, state, state, in, state, state, ih, hh, nullptr,
        nullptr, bias, out, state, state, kOverwrite, hint, attr);
  } else {
    status = dnnl_lbr_gru_backward_primitive_desc_create(
        &made, engine.get(), dnnl_backward, direction, in, state, ih, hh, bias, out,
        state, in, state, ih, hh, bias, out, state, kOverwrite, hint, attr);
  }
  return status == dnnl_success ? dnnl::primitive_desc(made) : dnnl::primitive_desc();
}

// The arguments are the layer's tensors, its results and the workspace, then the
// gradients of the tensors and of the results: see tensors_of().
OnednnPlan make_recurrent_plan(const dnnl::engine& engine, const RecurrentLayer& layer,
                               RecurrentPart part) {
  const dnnl::primitive_desc forward = descriptor_of(engine, layer, part);
  if (forward.get(/*allow_empty=*/true) == nullptr) return {};
  const RecurrentLayouts like(layer);
  using Roles = std::vector<std::pair<int, Layout>>;
  Roles given{{DNNL_ARG_SRC_LAYER, like.input},
              {DNNL_ARG_SRC_ITER, like.state},
              {DNNL_ARG_WEIGHTS_LAYER, like.weight_ih},
              {DNNL_ARG_WEIGHTS_ITER, like.weight_hh},
              {DNNL_ARG_BIAS, like.bias}};
  Roles results{{DNNL_ARG_DST_LAYER, like.output}, {DNNL_ARG_DST_ITER, like.state}};
  if (layer.lstm()) {
    given.emplace_back(DNNL_ARG_SRC_ITER_C, like.state);
    results.emplace_back(DNNL_ARG_DST_ITER_C, like.state);
  }
  const bool backward = part == RecurrentPart::gradients;
  const Access made = backward ? Access::read : Access::write;
  std::vector<OnednnPlan::Argument> arguments;
  const auto add = [&](const Roles& roles, int offset, Access access) {
    for (const auto& [role, layout] : roles) {
      arguments.push_back({offset + role, layout, access});
    }
  };
  add(given, 0, Access::read);
  add(results, 0, made);
  if (part != RecurrentPart::inference) {
    const Layout workspace = forward.query_md(dnnl::query::workspace_md);
    arguments.push_back({DNNL_ARG_WORKSPACE, workspace, made});
  }
  if (!backward) {
    return make_plan(engine, "onednn_recurrent", forward, std::move(arguments));
  }
  constexpr int kGradient = DNNL_ARG_DIFF_SRC - DNNL_ARG_SRC;
  add(given, kGradient, Access::write);
  add(results, kGradient, Access::read);
  return make_plan(engine, "onednn_recurrent_backward",
                   descriptor_of(engine, layer, part, forward), std::move(arguments));
}

std::shared_ptr<const OnednnPlan> plan_of(OnednnDevice& device,
                                          const RecurrentLayer& layer,
                                          RecurrentPart part) {
  std::string key = "recurrent";
  add_to_key(&key, part);
  add_to_key(&key, layer.lstm());
  add_to_key(&key, layer.reverse);
  add_to_key(&key, layer.input.sizes());
  add_to_key(&key, layer.hidden_size());
  return device.plan(std::move(key),
                     [&] { return make_recurrent_plan(device.engine(), layer, part); });
}

template <typename Body>
auto explained(const RecurrentLayer& layer, const Body& body) {
  return onednn_checked(body, "compute a layer of ", layer.lstm() ? "an LSTM" : "a GRU",
                        " of ", layer.hidden_size(), " units over ",
                        layer.input.sizes());
}

// Converts between the orders of a GRU's gates, in both directions: PyTorch's is reset,
// update, new; oneDNN's begins with update.
Tensor with_update_first(const RecurrentLayer& layer, const Tensor& gates) {
  if (layer.lstm()) return gates.contiguous();
  const int64_t n = layer.hidden_size();
  return at::cat(
      {gates.narrow(0, n, n), gates.narrow(0, 0, n), gates.narrow(0, 2 * n, n)});
}

// The biases in oneDNN's order: the hidden part of a GRU's new gate comes last.
Tensor one_bias(const RecurrentLayer& layer) {
  const int64_t n = layer.hidden_size();
  if (!layer.bias_ih.defined()) {
    return at::zeros({kBiases * n}, layer.input.options());
  }
  const Tensor sum = layer.bias_ih + layer.bias_hh;
  if (layer.lstm()) return sum;
  return at::cat({sum.narrow(0, n, n), sum.narrow(0, 0, n),
                  layer.bias_ih.narrow(0, 2 * n, n),
                  layer.bias_hh.narrow(0, 2 * n, n)});
}

// The tensors in the order of a plan's arguments; undefined ones are no arguments.
Tensors tensors_of(const RecurrentLayer& layer, const RecurrentResults& made) {
  return {layer.input,
          layer.hx,
          with_update_first(layer, layer.weight_ih),
          with_update_first(layer, layer.weight_hh),
          one_bias(layer),
          layer.cx,
          made.output,
          made.hy,
          made.cy,
          made.workspace};
}

void run_recurrent(const OnednnPlan& plan, Tensors tensors, size_t position,
                   Stream& stream) {
  std::erase_if(tensors, [](const Tensor& each) { return !each.defined(); });
  for (Tensor& each : tensors) each = each.contiguous();
  run_plan(plan, OnednnDevice::of(*stream.ordinal().devices[position]), stream,
           position, tensors);
}

}  // namespace

bool onednn_recurs(const PhysicalDevice& device, const RecurrentLayer& layer,
                   bool train) {
  if (layer.steps() < kMinSteps || layer.input.scalar_type() != at::kFloat) {
    return false;
  }
  OnednnDevice& onednn = OnednnDevice::of(device);
  if (!onednn.is_known()) return false;
  return explained(layer, [&] {
    return plan_of(onednn, layer, forward_part(train))->possible &&
           (!train || plan_of(onednn, layer, RecurrentPart::gradients)->possible);
  });
}

RecurrentResults onednn_recurrent(const RecurrentLayer& layer, bool train,
                                  size_t position, Stream& stream) {
  const PhysicalDevice& on = *stream.ordinal().devices[position];
  return explained(layer, [&] {
    const auto plan = plan_of(OnednnDevice::of(on), layer, forward_part(train));
    const auto options = layer.input.options();
    RecurrentResults made;
    made.form = on.id;
    made.output =
        at::empty({layer.steps(), layer.batch(), layer.hidden_size()}, options);
    made.hy = at::empty(layer.hx.sizes(), options);
    if (layer.lstm()) made.cy = at::empty(layer.cx.sizes(), options);
    if (train) {
      const auto bytes = static_cast<int64_t>(plan->arguments.back().layout.get_size());
      made.workspace = at::empty({bytes}, options.dtype(at::kByte));
    }
    run_recurrent(*plan, tensors_of(layer, made), position, stream);
    return made;
  });
}

RecurrentTensors onednn_recurrent_gradients(const RecurrentLayer& layer,
                                            const RecurrentResults& made,
                                            const RecurrentResults& grads,
                                            size_t position, Stream& stream) {
  return explained(layer, [&] {
    const auto plan = plan_of(OnednnDevice::of(*stream.ordinal().devices[position]),
                              layer, RecurrentPart::gradients);
    const auto like = [](const Tensor& tensor) {
      return at::empty_like(tensor, at::MemoryFormat::Contiguous);
    };
    RecurrentTensors found;
    found.input = like(layer.input);
    found.hx = like(layer.hx);
    if (layer.lstm()) found.cx = like(layer.cx);
    const Tensor weight_ih = like(layer.weight_ih), weight_hh = like(layer.weight_hh);
    const int64_t n = layer.hidden_size();
    const Tensor bias = at::empty({kBiases * n}, layer.input.options());
    Tensors tensors = tensors_of(layer, made);
    for (const Tensor& each : {found.input, found.hx, weight_ih, weight_hh, bias,
                               found.cx, grads.output, grads.hy, grads.cy}) {
      tensors.push_back(each);
    }
    run_recurrent(*plan, std::move(tensors), position, stream);
    found.weight_ih = with_update_first(layer, weight_ih);
    found.weight_hh = with_update_first(layer, weight_hh);
    if (!layer.bias_ih.defined()) return found;
    found.bias_ih = with_update_first(layer, bias);
    found.bias_hh = layer.lstm() ? bias.clone()
                                 : at::cat({bias.narrow(0, n, n), bias.narrow(0, 0, n),
                                            bias.narrow(0, 3 * n, n)});
    return found;
  });
}

}  // namespace xpurt
