// A layer by its cells: one product for the inputs of all steps, then a product and a
// kernel per step. The gradients of the weights are one product each, too.
#include <ATen/TensorOperators.h>
#include <ATen/ops/_thnn_fused_gru_cell.h>
#include <ATen/ops/_thnn_fused_gru_cell_backward.h>
#include <ATen/ops/_thnn_fused_lstm_cell.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward_impl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include "recurrent.h"

namespace xpurt {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// The n-th step that is taken.
size_t nth_step(const RecurrentLayer& layer, size_t n) {
  return layer.reverse ? layer.steps() - 1 - n : n;
}

// Goes through the layer; `keep` is called with each step, its state, the state of its
// cell and what the cell keeps for its gradient.
template <typename Keep>
RecurrentResults through_cells(const RecurrentLayer& layer, const Keep& keep) {
  const Tensors gates = at::matmul(layer.input, layer.weight_ih.t()).unbind(0);
  const Tensor hidden = layer.weight_hh.t();
  Tensors outputs(gates.size());
  RecurrentResults made;
  made.hy = layer.hx;
  made.cy = layer.cx;
  for (size_t n = 0; n < gates.size(); ++n) {
    const size_t step = nth_step(layer, n);
    const Tensor by_hidden = at::matmul(made.hy, hidden);
    Tensor kept;
    if (layer.lstm) {
      std::tie(made.hy, made.cy, kept) = at::_thnn_fused_lstm_cell(
          gates[step], by_hidden, made.cy, layer.bias_ih, layer.bias_hh);
      if (layer.projection.defined()) {
        made.hy = at::matmul(made.hy, layer.projection.t());
      }
    } else {
      std::tie(made.hy, kept) = at::_thnn_fused_gru_cell(
          gates[step], by_hidden, made.hy, layer.bias_ih, layer.bias_hh);
    }
    outputs[step] = made.hy;
    keep(step, made.cy, kept);
  }
  made.output = at::stack(outputs);
  return made;
}

// The states that the steps began with.
Tensor states_before(const RecurrentLayer& layer, const Tensor& output) {
  const Tensor first = layer.hx.unsqueeze(0);
  const int64_t others = layer.steps() - 1;
  return layer.reverse ? at::cat({output.narrow(0, 1, others), first})
                       : at::cat({first, output.narrow(0, 0, others)});
}

}  // namespace

RecurrentResults differentiable_layer(const RecurrentLayer& layer) {
  return through_cells(layer, [](size_t, const Tensor&, const Tensor&) {});
}

// The workspace is (steps, batch, 5 * hidden size): what a cell keeps, and of an LSTM
// the state of the cell.
RecurrentResults layer_by_cells(const RecurrentLayer& layer, bool train) {
  Tensors all_kept(train ? layer.steps() : 0);
  RecurrentResults made =
      through_cells(layer, [&](size_t step, const Tensor& cell, const Tensor& kept) {
        if (!train) return;
        all_kept[step] = layer.lstm ? at::cat({kept, cell}, 1) : kept;
      });
  if (train) made.workspace = at::stack(all_kept);
  return made;
}

RecurrentGradients gradients_by_cells(const RecurrentLayer& layer,
                                      const RecurrentResults& made,
                                      const RecurrentGrads& grads) {
  const int64_t steps = layer.steps(), n = layer.hidden_size();
  const Tensors kept = made.workspace.unbind(0), outward = grads.output.unbind(0);
  // To the gates' parts from the input and from the state.
  Tensors to_input(steps), to_hidden(steps);
  RecurrentGradients found;
  Tensor to_state = grads.hy, to_cell = grads.cy;
  for (int64_t i = steps; i-- > 0;) {
    const size_t step = nth_step(layer, i);
    const Tensor grad = outward[step] + to_state;
    if (layer.lstm) {
      const Tensor cell = kept[step].narrow(1, 4 * n, n);
      const Tensor before =
          i == 0 ? layer.cx : kept[nth_step(layer, i - 1)].narrow(1, 4 * n, n);
      std::tie(to_input[step], to_cell, std::ignore) =
          at::_thnn_fused_lstm_cell_backward_impl(
              grad, to_cell, before, cell, kept[step].narrow(1, 0, 4 * n), false);
      to_state = at::matmul(to_input[step], layer.weight_hh);
    } else {
      Tensor past;
      std::tie(to_input[step], to_hidden[step], past, std::ignore, std::ignore) =
          at::_thnn_fused_gru_cell_backward(grad, kept[step], false);
      to_state = past.addmm_(to_hidden[step], layer.weight_hh);
    }
  }
  found.hx = to_state;
  found.cx = to_cell;
  const Tensor inward = at::stack(to_input);
  const Tensor inward_rows = inward.flatten(0, 1);
  const Tensor hidden_rows =
      layer.lstm ? inward_rows : at::stack(to_hidden).flatten(0, 1);
  found.input = at::matmul(inward, layer.weight_ih);
  found.weight_ih =
      at::matmul(inward_rows.t(), layer.input.reshape({-1, layer.input_size()}));
  found.weight_hh =
      at::matmul(hidden_rows.t(), states_before(layer, made.output).flatten(0, 1));
  if (layer.bias_ih.defined()) {
    found.bias_ih = inward_rows.sum(0);
    found.bias_hh = hidden_rows.sum(0);
  }
  return found;
}

}  // namespace xpurt
