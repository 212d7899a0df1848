#include "rows/recurrent_cells.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_thnn_fused_gru_cell.h>
#include <ATen/ops/_thnn_fused_gru_cell_backward.h>
#include <ATen/ops/_thnn_fused_lstm_cell.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward_impl.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

namespace xpurt {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// The index of the n-th step in order of computation.
size_t nth_step(const RecurrentLayer& layer, int64_t n) {
  return layer.reverse ? layer.steps() - 1 - n : n;
}

}  // namespace

// One product for the inputs of all steps, then a product and a cell per step. The
// workspace has the shape (steps, batch, 5 * hidden size): the values that a cell keeps
// for its gradient, and the new cell state of an LSTM.
RecurrentResults layer_by_cells(const RecurrentLayer& layer, bool train) {
  const Tensors gates = at::matmul(layer.input, layer.weight_ih.t()).unbind(0);
  const Tensor hidden = layer.weight_hh.t();
  Tensors outputs(gates.size()), workspaces(train ? gates.size() : 0);
  RecurrentResults made;
  made.hy = layer.hx;
  made.cy = layer.cx;
  for (int64_t n = 0; n < layer.steps(); ++n) {
    const size_t step = nth_step(layer, n);
    const Tensor by_hidden = at::matmul(made.hy, hidden);
    Tensor kept;
    if (layer.lstm()) {
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
    if (train) workspaces[step] = layer.lstm() ? at::cat({kept, made.cy}, 1) : kept;
  }
  made.output = at::stack(outputs);
  if (train) made.workspace = at::stack(workspaces);
  return made;
}

// A cell and a product per step, from the last to the first. The gradients of the
// weights are one product each.
RecurrentTensors gradients_by_cells(const RecurrentLayer& layer,
                                    const RecurrentResults& made,
                                    const RecurrentResults& grads) {
  const int64_t steps = layer.steps(), n = layer.hidden_size();
  const Tensors kept = made.workspace.unbind(0), outward = grads.output.unbind(0);
  // Gradients of the gates' two terms: of the input and of the hidden state.
  Tensors to_input(steps), to_hidden(steps);
  RecurrentTensors found;
  found.hx = grads.hy;
  found.cx = grads.cy;
  for (int64_t i = steps; i-- > 0;) {
    const size_t step = nth_step(layer, i);
    const Tensor grad = outward[step] + found.hx;
    if (layer.lstm()) {
      const auto cell_of = [&](size_t at) { return kept[at].narrow(1, 4 * n, n); };
      std::tie(to_input[step], found.cx, std::ignore) =
          at::_thnn_fused_lstm_cell_backward_impl(
              grad, found.cx, i == 0 ? layer.cx : cell_of(nth_step(layer, i - 1)),
              cell_of(step), kept[step].narrow(1, 0, 4 * n), false);
      found.hx = at::matmul(to_input[step], layer.weight_hh);
    } else {
      std::tie(to_input[step], to_hidden[step], found.hx, std::ignore, std::ignore) =
          at::_thnn_fused_gru_cell_backward(grad, kept[step], false);
      found.hx.addmm_(to_hidden[step], layer.weight_hh);
    }
  }
  const Tensor inward = at::stack(to_input), inward_rows = inward.flatten(0, 1);
  const Tensor hidden_rows =
      layer.lstm() ? inward_rows : at::stack(to_hidden).flatten(0, 1);
  // The hidden state at the beginning of each step.
  Tensors before{layer.hx.unsqueeze(0),
                 made.output.narrow(0, layer.reverse ? 1 : 0, steps - 1)};
  if (layer.reverse) std::swap(before[0], before[1]);
  found.input = at::matmul(inward, layer.weight_ih);
  found.weight_ih = at::matmul(inward_rows.t(), layer.input.flatten(0, 1));
  found.weight_hh = at::matmul(hidden_rows.t(), at::cat(before).flatten(0, 1));
  if (layer.bias_ih.defined()) {
    found.bias_ih = inward_rows.sum(0);
    found.bias_hh = hidden_rows.sum(0);
  }
  return found;
}

}  // namespace xpurt
