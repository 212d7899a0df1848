// The ops of recurrent layers, and their gradients. The rows of kernels/recurrent.py
// compute them; an LSTM also PyTorch's CPU kernel, which has gradients of its own.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/mkldnn_rnn_layer_backward.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/library.h>

#include "op_record.h"
#include "recurrent.h"

namespace xpurt {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  const std::string layer =
      "Tensor input, Tensor hx, Tensor? cx, Tensor weight_ih, Tensor weight_hh, "
      "Tensor? bias_ih, Tensor? bias_hh, bool reverse";
  const std::string made =
      "Tensor output, Tensor hy, Tensor? cy, Tensor workspace, int form";
  const std::string grads = "Tensor grad_output, Tensor grad_hy, Tensor? grad_cy";
  const auto define = [&](const std::string& schema) { m.def(schema.c_str()); };
  for (const std::string name : {"gru_layer", "lstm_layer"}) {
    define(name + "(" + layer +
           ", bool train) -> (Tensor, Tensor, Tensor, Tensor, int)");
    define(name + "_backward(" + grads + ", " + layer + ", " + made +
           ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  }
}

using Forward = std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t>(
    const Tensor&, const Tensor&, const MaybeTensor&, const Tensor&, const Tensor&,
    const MaybeTensor&, const MaybeTensor&, bool, bool);
using Backward = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>(
    const Tensor&, const Tensor&, const MaybeTensor&, const Tensor&, const Tensor&,
    const MaybeTensor&, const Tensor&, const Tensor&, const MaybeTensor&,
    const MaybeTensor&, bool, const Tensor&, const Tensor&, const MaybeTensor&,
    const Tensor&, int64_t);

template <typename Signature>
c10::TypedOperatorHandle<Signature> find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

MaybeTensor if_defined(const Tensor& tensor) {
  return tensor.defined() ? MaybeTensor(tensor) : std::nullopt;
}
Tensor or_undefined(const MaybeTensor& tensor) {
  return tensor.value_or(Tensor());
}

RecurrentResults forward(const RecurrentLayer& layer, bool train) {
  static const auto lstm = find<Forward>("xpurt::lstm_layer");
  static const auto gru = find<Forward>("xpurt::gru_layer");
  auto [output, hy, cy, workspace, form] =
      (layer.lstm ? lstm : gru)
          .call(layer.input, layer.hx, if_defined(layer.cx), layer.weight_ih,
                layer.weight_hh, if_defined(layer.bias_ih), if_defined(layer.bias_hh),
                layer.reverse, train);
  return {output, hy, cy, workspace, form};
}

constexpr int64_t kLstm = 2;  // as mkldnn_rnn_layer numbers kinds of layers

Tensor or_empty(const Tensor& bias, const RecurrentLayer& layer) {
  return bias.defined() ? bias : at::empty({0}, layer.input.options());
}

RecurrentResults lstm_by_pytorch(const RecurrentLayer& layer, bool train) {
  // Without it there is no workspace.
  const at::AutoGradMode with_gradient(train);
  auto [output, hy, cy, workspace] = at::mkldnn_rnn_layer(
      layer.input.contiguous(), layer.weight_ih, layer.weight_hh,
      or_empty(layer.bias_ih, layer), or_empty(layer.bias_hh, layer),
      layer.hx.contiguous(), layer.cx.contiguous(), layer.reverse, {}, kLstm,
      layer.hidden_size(), 1, layer.bias_ih.defined(), false, false, train);
  return {output, hy, cy, workspace, kByPyTorch};
}

// On tensors of the CPU: see OpRecord::host_kernel.
void lstm_on_host(const c10::OperatorHandle&, c10::DispatchKeySet,
                  torch::jit::Stack* stack) {
  const RecurrentLayer layer = layer_at(&*(stack->end() - 9), true);
  const bool train = stack->back().toBool();
  RecurrentResults made = lstm_by_pytorch(layer, train);
  torch::jit::drop(*stack, 9);
  push_results(std::move(made), stack);
}

const bool lstm_has_host_kernel =
    set_host_kernels({{"xpurt::lstm_layer", "", &lstm_on_host}});

RecurrentGradients backward(const RecurrentLayer& layer, const RecurrentResults& made,
                            const RecurrentGrads& grads) {
  if (made.form == kByPyTorch) {
    auto [input, weight_ih, weight_hh, bias_ih, bias_hh, hx, cx] =
        at::mkldnn_rnn_layer_backward(
            layer.input.contiguous(), layer.weight_ih, layer.weight_hh,
            or_empty(layer.bias_ih, layer), or_empty(layer.bias_hh, layer),
            layer.hx.contiguous(), layer.cx.contiguous(), made.output, made.hy, made.cy,
            grads.output, grads.hy, grads.cy, layer.reverse, kLstm, layer.hidden_size(),
            1, layer.bias_ih.defined(), true, false, {}, false, made.workspace);
    // It has gradients of biases that are not there, too.
    const bool biased = layer.bias_ih.defined();
    return {input,
            hx,
            cx,
            weight_ih,
            weight_hh,
            biased ? bias_ih : Tensor(),
            biased ? bias_hh : Tensor()};
  }
  static const auto lstm = find<Backward>("xpurt::lstm_layer_backward");
  static const auto gru = find<Backward>("xpurt::gru_layer_backward");
  auto [input, hx, cx, weight_ih, weight_hh, bias_ih, bias_hh] =
      (layer.lstm ? lstm : gru)
          .call(grads.output, grads.hy, if_defined(grads.cy), layer.input, layer.hx,
                if_defined(layer.cx), layer.weight_ih, layer.weight_hh,
                if_defined(layer.bias_ih), if_defined(layer.bias_hh), layer.reverse,
                made.output, made.hy, if_defined(made.cy), made.workspace, made.form);
  return {input, hx, cx, weight_ih, weight_hh, bias_ih, bias_hh};
}

// What gradients of gradients want: the layer's own gradients, by ops that can be
// differentiated again.
RecurrentGradients differentiable_gradients(const RecurrentLayer& layer,
                                            const RecurrentGrads& grads) {
  const RecurrentResults made = differentiable_layer(layer);
  variable_list outputs{made.output, made.hy}, onto{grads.output, grads.hy};
  if (layer.lstm) {
    outputs.push_back(made.cy);
    onto.push_back(grads.cy);
  }
  RecurrentGradients found;
  variable_list inputs;
  std::vector<Tensor*> places;
  for (auto [input, place] : {std::pair(&layer.input, &found.input),
                              {&layer.hx, &found.hx},
                              {&layer.cx, &found.cx},
                              {&layer.weight_ih, &found.weight_ih},
                              {&layer.weight_hh, &found.weight_hh},
                              {&layer.bias_ih, &found.bias_ih},
                              {&layer.bias_hh, &found.bias_hh}}) {
    if (!input->defined() || !input->requires_grad()) continue;
    inputs.push_back(*input);
    places.push_back(place);
  }
  const variable_list gradients =
      torch::autograd::grad(outputs, inputs, onto, /*retain_graph=*/true,
                            /*create_graph=*/true, /*allow_unused=*/true);
  for (size_t i = 0; i < places.size(); ++i) *places[i] = gradients[i];
  return found;
}

class RecurrentFunction : public torch::autograd::Function<RecurrentFunction> {
 public:
  static variable_list forward(AutogradContext* context, const Tensor& input,
                               const Tensor& hx, const MaybeTensor& cx,
                               const Tensor& weight_ih, const Tensor& weight_hh,
                               const MaybeTensor& bias_ih, const MaybeTensor& bias_hh,
                               bool reverse) {
    const RecurrentLayer layer{cx.has_value(),
                               input,
                               hx,
                               or_undefined(cx),
                               weight_ih,
                               weight_hh,
                               or_undefined(bias_ih),
                               or_undefined(bias_hh),
                               reverse};
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const RecurrentResults made = xpurt::forward(layer, true);
    context->save_for_backward({input, hx, layer.cx, weight_ih, weight_hh,
                                layer.bias_ih, layer.bias_hh, made.output, made.hy,
                                made.cy, made.workspace});
    context->saved_data["reverse"] = reverse;
    context->saved_data["form"] = made.form;
    variable_list results{made.output, made.hy};
    if (layer.lstm) results.push_back(made.cy);
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const RecurrentLayer layer{
        saved[2].defined(), saved[0], saved[1],
        saved[2],           saved[3], saved[4],
        saved[5],           saved[6], context->saved_data["reverse"].toBool()};
    const RecurrentResults made{saved[7], saved[8], saved[9], saved[10],
                                context->saved_data["form"].toInt()};
    const RecurrentGrads onto{grads[0], grads[1], layer.lstm ? grads[2] : Tensor()};
    const RecurrentGradients found = c10::GradMode::is_enabled()
                                         ? differentiable_gradients(layer, onto)
                                         : xpurt::backward(layer, made, onto);
    return {found.input,     found.hx,      found.cx,      found.weight_ih,
            found.weight_hh, found.bias_ih, found.bias_hh, Tensor()};
  }
};

bool wants_gradient(const RecurrentLayer& layer) {
  return torch::autograd::compute_requires_grad(layer.input, layer.hx, layer.cx,
                                                layer.weight_ih, layer.weight_hh,
                                                layer.bias_ih, layer.bias_hh);
}

}  // namespace

RecurrentResults recurrent_layer(const RecurrentLayer& layer) {
  if (!wants_gradient(layer)) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    return forward(layer, false);
  }
  const variable_list made = RecurrentFunction::apply(
      layer.input, layer.hx, if_defined(layer.cx), layer.weight_ih, layer.weight_hh,
      if_defined(layer.bias_ih), if_defined(layer.bias_hh), layer.reverse);
  return {made[0], made[1], layer.lstm ? made[2] : Tensor(), {}, kByCells};
}

}  // namespace xpurt
