// The rows of kernels/rows/nn/recurrent.py compute these ops. PyTorch's CPU kernel may
// compute an LSTM, too; its gradients are then PyTorch's.
#include "rows/recurrent_autograd.h"

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

#include "op/op_record.h"
#include "rows/recurrent_cells.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using torch::jit::Stack;

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  const std::string layer =
      "Tensor input, Tensor hx, Tensor? cx, Tensor weight_ih, Tensor weight_hh, "
      "Tensor? bias_ih, Tensor? bias_hh, bool reverse";
  const auto define = [&](const std::string& schema) { m.def(schema.c_str()); };
  for (const std::string name : {"gru_layer", "lstm_layer"}) {
    define(name + "(" + layer +
           ", bool train) -> (Tensor, Tensor, Tensor, Tensor, int)");
    define(name + "_backward(Tensor grad_output, Tensor grad_hy, Tensor? grad_cy, " +
           layer +
           ", Tensor output, Tensor hy, Tensor? cy, Tensor workspace, int form)"
           " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)");
  }
}

void push_layer(Stack* stack, RecurrentLayer layer) {
  for (Tensor* each : layer.all()) stack->emplace_back(*each);
  stack->emplace_back(layer.reverse);
}

void call(const char* name, Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(stack);
}

RecurrentResults forward(const RecurrentLayer& layer, bool train) {
  Stack stack;
  push_layer(&stack, layer);
  stack.emplace_back(train);
  call(layer.lstm() ? "xpurt::lstm_layer" : "xpurt::gru_layer", &stack);
  return results_at(stack.data());
}

// The bias; an empty tensor if there is none, as PyTorch's kernels require.
Tensor or_empty(const Tensor& bias, const RecurrentLayer& layer) {
  return bias.defined() ? bias : at::empty({0}, layer.input.options());
}

constexpr int64_t kLstm = 2;  // the mode of mkldnn_rnn_layer

// The host kernel of lstm_layer, for CPU tensors: see OpRecord::host_kernel.
void lstm_on_host(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  constexpr size_t kArguments = 9;
  const RecurrentLayer layer = layer_at(&*(stack->end() - kArguments));
  const bool train = stack->back().toBool();
  // PyTorch's kernel makes a workspace only in grad mode.
  const at::AutoGradMode with_gradient(train);
  auto [output, hy, cy, workspace] = at::mkldnn_rnn_layer(
      layer.input.contiguous(), layer.weight_ih, layer.weight_hh,
      or_empty(layer.bias_ih, layer), or_empty(layer.bias_hh, layer),
      layer.hx.contiguous(), layer.cx.contiguous(), layer.reverse, {}, kLstm,
      layer.hidden_size(), 1, layer.bias_ih.defined(), false, false, train);
  torch::jit::drop(*stack, kArguments);
  torch::jit::push(*stack, output, hy, cy, workspace, kByPyTorch);
}

const bool lstm_has_host_kernel =
    set_host_kernels({{"xpurt::lstm_layer", "", &lstm_on_host}});

RecurrentTensors gradients_by_pytorch(const RecurrentLayer& layer,
                                      const RecurrentResults& made,
                                      const RecurrentResults& grads) {
  RecurrentTensors found;
  std::tie(found.input, found.weight_ih, found.weight_hh, found.bias_ih, found.bias_hh,
           found.hx, found.cx) =
      at::mkldnn_rnn_layer_backward(
          layer.input.contiguous(), layer.weight_ih, layer.weight_hh,
          or_empty(layer.bias_ih, layer), or_empty(layer.bias_hh, layer),
          layer.hx.contiguous(), layer.cx.contiguous(), made.output, made.hy, made.cy,
          grads.output, grads.hy, grads.cy, layer.reverse, kLstm, layer.hidden_size(),
          1, layer.bias_ih.defined(), true, false, {}, false, made.workspace);
  // PyTorch returns gradients of absent biases, too.
  if (!layer.bias_ih.defined()) found.bias_ih = found.bias_hh = Tensor();
  return found;
}

RecurrentTensors gradients(const RecurrentLayer& layer, const RecurrentResults& made,
                           const RecurrentResults& grads) {
  if (made.form == kByPyTorch) return gradients_by_pytorch(layer, made, grads);
  Stack stack{grads.output, grads.hy, grads.cy};
  push_layer(&stack, layer);
  torch::jit::push(stack, made.output, made.hy, made.cy, made.workspace, made.form);
  call(layer.lstm() ? "xpurt::lstm_layer_backward" : "xpurt::gru_layer_backward",
       &stack);
  return tensors_at(stack.data());
}

variable_list results_of(const RecurrentLayer& layer, const RecurrentResults& made) {
  variable_list results{made.output, made.hy};
  if (layer.lstm()) results.push_back(made.cy);
  return results;
}

// Gradients that can be differentiated again: those of the cells' ops.
RecurrentTensors differentiable_gradients(RecurrentLayer layer,
                                          const variable_list& grads) {
  RecurrentTensors found;
  variable_list inputs;
  std::vector<Tensor*> to;
  for (size_t i = 0; i < layer.all().size(); ++i) {
    const Tensor& given = *layer.all()[i];
    if (!given.defined() || !given.requires_grad()) continue;
    inputs.push_back(given);
    to.push_back(found.all()[i]);
  }
  const variable_list gradients = torch::autograd::grad(
      results_of(layer, layer_by_cells(layer, /*train=*/false)), inputs, grads,
      /*retain_graph=*/true, /*create_graph=*/true, /*allow_unused=*/true);
  for (size_t i = 0; i < to.size(); ++i) *to[i] = gradients[i];
  return found;
}

// The autograd function of a layer. Its variables are the defined tensors of the layer.
struct RecurrentFunction : torch::autograd::Function<RecurrentFunction> {
  static variable_list forward(AutogradContext* context, RecurrentLayer layer,
                               at::TensorList) {
    const RecurrentResults made = xpurt::forward(layer, true);
    variable_list saved{made.output, made.hy, made.cy, made.workspace};
    for (Tensor* each : layer.all()) saved.push_back(*each);
    context->save_for_backward(std::move(saved));
    context->saved_data["reverse"] = layer.reverse;
    context->saved_data["form"] = made.form;
    return results_of(layer, made);
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const RecurrentResults made{saved[0], saved[1], saved[2], saved[3],
                                context->saved_data["form"].toInt()};
    RecurrentLayer layer{
        {saved[4], saved[5], saved[6], saved[7], saved[8], saved[9], saved[10]},
        context->saved_data["reverse"].toBool()};
    RecurrentTensors found =
        c10::GradMode::is_enabled()
            ? differentiable_gradients(layer, grads)
            : gradients(layer, made,
                        {grads[0], grads[1], layer.lstm() ? grads[2] : Tensor()});
    variable_list results{Tensor()};  // no gradient for the argument `layer`
    for (size_t i = 0; i < layer.all().size(); ++i) {
      if (layer.all()[i]->defined()) results.push_back(*found.all()[i]);
    }
    return results;
  }
};

}  // namespace

RecurrentResults recurrent_layer(RecurrentLayer layer) {
  variable_list given;
  for (Tensor* each : layer.all()) {
    if (each->defined()) given.push_back(*each);
  }
  const at::TensorList variables = given;
  if (!torch::autograd::compute_requires_grad(variables)) return forward(layer, false);
  const variable_list made = RecurrentFunction::apply(layer, variables);
  return {made[0], made[1], layer.lstm() ? made[2] : Tensor()};
}

}  // namespace xpurt
