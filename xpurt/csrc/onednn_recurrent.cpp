#include "onednn_recurrent.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include "onednn_device.h"

namespace xpurt {
namespace {

using at::Tensor;
using dnnl::memory;
using Tag = memory::format_tag;

// Weights are reordered first, which fewer steps do not make up for.
constexpr int64_t kLeastSteps = 4;

// Of an LSTM one per gate; a GRU has two of the new gate.
constexpr int64_t kBiases = 4;

// A layer as oneDNN describes it: what the caller's dense tensors look like, and what
// primitives are asked for. A GRU is one with a linear part before the reset gate.
struct RecurrentDescription {
  explicit RecurrentDescription(const RecurrentLayer& of)
      : lstm(of.lstm),
        direction(of.reverse ? dnnl::rnn_direction::unidirectional_right2left
                             : dnnl::rnn_direction::unidirectional_left2right),
        input({of.steps(), of.batch(), of.input_size()}, type, Tag::tnc),
        output({of.steps(), of.batch(), of.hidden_size()}, type, Tag::tnc),
        state({1, 1, of.batch(), of.hidden_size()}, type, Tag::ldnc),
        weight_ih({1, 1, of.input_size(), of.gates(), of.hidden_size()}, type,
                  Tag::ldgoi),
        weight_hh({1, 1, of.hidden_size(), of.gates(), of.hidden_size()}, type,
                  Tag::ldgoi),
        bias({1, 1, kBiases, of.hidden_size()}, type, Tag::ldgo) {}

  // In the place of weights whose layout the primitive may choose.
  Layout any(const Layout& weight) const { return {weight.get_dims(), type, Tag::any}; }

  memory::data_type type = memory::data_type::f32;
  bool lstm;
  dnnl::rnn_direction direction;
  Layout input, output, state, weight_ih, weight_hh, bias;
};

// The primitives of one kind of layer, and their descriptors.
template <typename ForwardPrimitive, typename BackwardPrimitive>
struct RecurrentKind {
  using Forward = ForwardPrimitive;
  using Backward = BackwardPrimitive;
  static typename Forward::primitive_desc forward(const dnnl::engine& engine,
                                                  const RecurrentDescription& d,
                                                  bool train);
  static dnnl_status_t backward(dnnl_primitive_desc_t* made, const dnnl::engine& engine,
                                const RecurrentDescription& d,
                                const typename Forward::primitive_desc& hint);
};
using Lstm = RecurrentKind<dnnl::lstm_forward, dnnl::lstm_backward>;
using Gru = RecurrentKind<dnnl::lbr_gru_forward, dnnl::lbr_gru_backward>;

dnnl::prop_kind purpose(bool train) {
  return train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
}

template <>
Lstm::Forward::primitive_desc Lstm::forward(const dnnl::engine& engine,
                                            const RecurrentDescription& d, bool train) {
  const Layout no_peepholes;
  return {engine,
          purpose(train),
          d.direction,
          d.input,
          d.state,
          d.state,
          d.any(d.weight_ih),
          d.any(d.weight_hh),
          no_peepholes,
          d.bias,
          d.output,
          d.state,
          d.state,
          onednn_attributes(),
          true};
}

template <>
Gru::Forward::primitive_desc Gru::forward(const dnnl::engine& engine,
                                          const RecurrentDescription& d, bool train) {
  return {engine,
          purpose(train),
          d.direction,
          d.input,
          d.state,
          d.any(d.weight_ih),
          d.any(d.weight_hh),
          d.bias,
          d.output,
          d.state,
          onednn_attributes(),
          true};
}

// By the C functions: those of C++ only add to weights' gradients that are there.
constexpr unsigned kOverwrites = dnnl_rnn_flags_diff_weights_overwrite;

template <>
dnnl_status_t Lstm::backward(dnnl_primitive_desc_t* made, const dnnl::engine& engine,
                             const RecurrentDescription& d,
                             const Forward::primitive_desc& hint) {
  const Layout ih = d.any(d.weight_ih), hh = d.any(d.weight_hh);
  const auto state = d.state.get(), bias = d.bias.get();
  return dnnl_lstm_backward_primitive_desc_create(
      made, engine.get(), dnnl_backward, dnnl::convert_to_c(d.direction), d.input.get(),
      state, state, ih.get(), hh.get(), nullptr, nullptr, bias, d.output.get(), state,
      state, d.input.get(), state, state, ih.get(), hh.get(), nullptr, nullptr, bias,
      d.output.get(), state, state, kOverwrites, hint.get(), onednn_attributes().get());
}

template <>
dnnl_status_t Gru::backward(dnnl_primitive_desc_t* made, const dnnl::engine& engine,
                            const RecurrentDescription& d,
                            const Forward::primitive_desc& hint) {
  const Layout ih = d.any(d.weight_ih), hh = d.any(d.weight_hh);
  const auto state = d.state.get(), bias = d.bias.get();
  return dnnl_lbr_gru_backward_primitive_desc_create(
      made, engine.get(), dnnl_backward, dnnl::convert_to_c(d.direction), d.input.get(),
      state, ih.get(), hh.get(), bias, d.output.get(), state, d.input.get(), state,
      ih.get(), hh.get(), bias, d.output.get(), state, kOverwrites, hint.get(),
      onednn_attributes().get());
}

using Arguments = std::vector<OnednnPlan::Argument>;

// A state, and that of the cell if there is one.
void add_states(const RecurrentDescription& d, int hidden, int cell, Access access,
                Arguments* to) {
  to->push_back({hidden, d.state, access});
  if (d.lstm) to->push_back({cell, d.state, access});
}

// What both passes read: six or seven tensors.
Arguments what_is_given(const RecurrentDescription& d) {
  Arguments given{{DNNL_ARG_SRC_LAYER, d.input, Access::read}};
  add_states(d, DNNL_ARG_SRC_ITER, DNNL_ARG_SRC_ITER_C, Access::read, &given);
  given.push_back({DNNL_ARG_WEIGHTS_LAYER, d.weight_ih, Access::read});
  given.push_back({DNNL_ARG_WEIGHTS_ITER, d.weight_hh, Access::read});
  given.push_back({DNNL_ARG_BIAS, d.bias, Access::read});
  return given;
}

void add_results(const RecurrentDescription& d, Access access, Arguments* to) {
  to->push_back({DNNL_ARG_DST_LAYER, d.output, access});
  add_states(d, DNNL_ARG_DST_ITER, DNNL_ARG_DST_ITER_C, access, to);
}

template <typename Kind>
OnednnPlan forward_plan(const dnnl::engine& engine, const RecurrentDescription& d,
                        bool train) {
  const auto made = Kind::forward(engine, d, train);
  if (made.get(/*allow_empty=*/true) == nullptr) return {};
  Arguments arguments = what_is_given(d);
  add_results(d, Access::write, &arguments);
  if (train) {
    arguments.push_back({DNNL_ARG_WORKSPACE, made.workspace_desc(), Access::write});
  }
  return make_plan<typename Kind::Forward>(engine, "onednn_recurrent", made,
                                           std::move(arguments));
}

template <typename Kind>
OnednnPlan backward_plan(const dnnl::engine& engine, const RecurrentDescription& d) {
  const auto hint = Kind::forward(engine, d, true);
  if (hint.get(/*allow_empty=*/true) == nullptr) return {};
  dnnl_primitive_desc_t raw = nullptr;
  if (Kind::backward(&raw, engine, d, hint) != dnnl_success) return {};
  const typename Kind::Backward::primitive_desc made(raw);
  Arguments arguments = what_is_given(d);
  add_results(d, Access::read, &arguments);
  arguments.push_back({DNNL_ARG_WORKSPACE, hint.workspace_desc(), Access::read});
  arguments.push_back({DNNL_ARG_DIFF_DST_LAYER, d.output, Access::read});
  add_states(d, DNNL_ARG_DIFF_DST_ITER, DNNL_ARG_DIFF_DST_ITER_C, Access::read,
             &arguments);
  arguments.push_back({DNNL_ARG_DIFF_SRC_LAYER, d.input, Access::write});
  add_states(d, DNNL_ARG_DIFF_SRC_ITER, DNNL_ARG_DIFF_SRC_ITER_C, Access::write,
             &arguments);
  arguments.push_back({DNNL_ARG_DIFF_WEIGHTS_LAYER, d.weight_ih, Access::write});
  arguments.push_back({DNNL_ARG_DIFF_WEIGHTS_ITER, d.weight_hh, Access::write});
  arguments.push_back({DNNL_ARG_DIFF_BIAS, d.bias, Access::write});
  return make_plan<typename Kind::Backward>(engine, "onednn_recurrent_backward", made,
                                            std::move(arguments));
}

enum class RecurrentPart { inference, training, gradients };

RecurrentPart forward_part(bool train) {
  return train ? RecurrentPart::training : RecurrentPart::inference;
}

template <typename Kind>
OnednnPlan recurrent_plan(const dnnl::engine& engine, const RecurrentLayer& layer,
                          RecurrentPart part) {
  const RecurrentDescription description(layer);
  if (part == RecurrentPart::gradients) return backward_plan<Kind>(engine, description);
  return forward_plan<Kind>(engine, description, part == RecurrentPart::training);
}

std::shared_ptr<const OnednnPlan> plan_of(OnednnDevice& device,
                                          const RecurrentLayer& layer,
                                          RecurrentPart part) {
  std::string key = "recurrent";
  add_to_key(&key, part);
  add_to_key(&key, layer.lstm);
  add_to_key(&key, layer.reverse);
  add_to_key(&key, layer.input.sizes());
  add_to_key(&key, layer.hidden_size());
  return device.plan(std::move(key), [&] {
    const dnnl::engine& engine = device.engine();
    return layer.lstm ? recurrent_plan<Lstm>(engine, layer, part)
                      : recurrent_plan<Gru>(engine, layer, part);
  });
}

template <typename Body>
auto explained(const RecurrentLayer& layer, const Body& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    TORCH_CHECK(false, "oneDNN could not compute a layer of ",
                layer.lstm ? "an LSTM" : "a GRU", " of ", layer.hidden_size(),
                " units over ", layer.input.sizes(), ": ", error.what());
  }
}

// PyTorch's gates of a GRU are reset, update and new; oneDNN begins with the update.
// The same leads back.
Tensor with_update_first(const RecurrentLayer& layer, const Tensor& gates) {
  if (layer.lstm) return gates.contiguous();
  const int64_t n = layer.hidden_size();
  return at::cat(
      {gates.narrow(0, n, n), gates.narrow(0, 0, n), gates.narrow(0, 2 * n, n)});
}

// The biases as oneDNN has them: a GRU's hidden part of the new gate comes last.
Tensor one_bias(const RecurrentLayer& layer) {
  const int64_t n = layer.hidden_size();
  if (!layer.bias_ih.defined()) {
    return at::zeros({kBiases * n}, layer.input.options());
  }
  const Tensor sum = layer.bias_ih + layer.bias_hh;
  if (layer.lstm) return sum;
  return at::cat({sum.narrow(0, n, n), sum.narrow(0, 0, n),
                  layer.bias_ih.narrow(0, 2 * n, n),
                  layer.bias_hh.narrow(0, 2 * n, n)});
}

using Tensors = std::vector<Tensor>;

Tensors tensors_given(const RecurrentLayer& layer) {
  Tensors given{layer.input.contiguous(), layer.hx.contiguous()};
  if (layer.lstm) given.push_back(layer.cx.contiguous());
  given.push_back(with_update_first(layer, layer.weight_ih));
  given.push_back(with_update_first(layer, layer.weight_hh));
  given.push_back(one_bias(layer));
  return given;
}

}  // namespace

bool onednn_recurs(const PhysicalDevice& device, const RecurrentLayer& layer,
                   bool train) {
  if (layer.steps() < kLeastSteps || layer.input.scalar_type() != at::kFloat) {
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
  OnednnDevice& device = OnednnDevice::of(on);
  return explained(layer, [&] {
    const auto plan = plan_of(device, layer, forward_part(train));
    const auto options = layer.input.options();
    RecurrentResults made;
    made.form = on.id;
    made.output =
        at::empty({layer.steps(), layer.batch(), layer.hidden_size()}, options);
    made.hy = at::empty(layer.hx.sizes(), options);
    Tensors tensors = tensors_given(layer);
    tensors.push_back(made.output);
    tensors.push_back(made.hy);
    if (layer.lstm) {
      tensors.push_back(made.cy = at::empty(layer.cx.sizes(), options));
    }
    if (train) {
      const auto bytes = static_cast<int64_t>(plan->arguments.back().layout.get_size());
      tensors.push_back(made.workspace = at::empty({bytes}, options.dtype(at::kByte)));
    }
    run_plan(*plan, device, stream, position, tensors);
    return made;
  });
}

RecurrentGradients onednn_recurrent_gradients(const RecurrentLayer& layer,
                                              const RecurrentResults& made,
                                              const RecurrentGrads& grads,
                                              size_t position, Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  return explained(layer, [&] {
    const auto plan = plan_of(device, layer, RecurrentPart::gradients);
    Tensors tensors = tensors_given(layer);
    const auto like = [&](const Tensor& tensor) {
      return tensors.emplace_back(at::empty_like(tensor, at::MemoryFormat::Contiguous));
    };
    const auto add = [&](const Tensor& first, const Tensor& hidden,
                         const Tensor& cell) {
      tensors.push_back(first.contiguous());
      tensors.push_back(hidden.contiguous());
      if (layer.lstm) tensors.push_back(cell.contiguous());
    };
    add(made.output, made.hy, made.cy);
    tensors.push_back(made.workspace);
    add(grads.output, grads.hy, grads.cy);
    RecurrentGradients found;
    found.input = like(layer.input);
    found.hx = like(layer.hx);
    if (layer.lstm) found.cx = like(layer.cx);
    const Tensor weight_ih = like(layer.weight_ih), weight_hh = like(layer.weight_hh);
    const int64_t n = layer.hidden_size();
    const Tensor bias =
        tensors.emplace_back(at::empty({kBiases * n}, layer.input.options()));
    run_plan(*plan, device, stream, position, tensors);
    found.weight_ih = layer.lstm ? weight_ih : with_update_first(layer, weight_ih);
    found.weight_hh = layer.lstm ? weight_hh : with_update_first(layer, weight_hh);
    if (!layer.bias_ih.defined()) return found;
    if (layer.lstm) {
      found.bias_ih = bias;
      found.bias_hh = bias.clone();
    } else {
      found.bias_ih = with_update_first(layer, bias);
      found.bias_hh = at::cat(
          {bias.narrow(0, n, n), bias.narrow(0, 0, n), bias.narrow(0, 3 * n, n)});
    }
    return found;
  });
}

}  // namespace xpurt
