// One layer of an LSTM or a GRU in one direction, as one op of xpurt's own.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

namespace xpurt {

// Rows of weights, and biases, lie by gates as PyTorch has them: input, forget, cell
// and output of an LSTM, reset, update and new of a GRU.
struct RecurrentLayer {
  bool lstm = false;
  at::Tensor input;                 // (steps, batch, size)
  at::Tensor hx, cx;                // (batch, hidden size); a GRU has no cx
  at::Tensor weight_ih, weight_hh;  // (gates * hidden size, size) and (.., hidden size)
  at::Tensor bias_ih, bias_hh;      // (gates * hidden size), or undefined
  bool reverse = false;             // from the last step to the first
  at::Tensor projection;            // of the state, or undefined: not for the op

  int64_t gates() const { return lstm ? 4 : 3; }
  int64_t steps() const { return input.size(0); }
  int64_t batch() const { return input.size(1); }
  int64_t input_size() const { return input.size(2); }
  int64_t hidden_size() const { return hx.size(1); }
};

// What computed a layer, for the gradients to be computed by the same: oneDNN on the
// physical device of that number, or one of these.
constexpr int64_t kByCells = -1;
constexpr int64_t kByPyTorch = -2;

struct RecurrentResults {
  at::Tensor output;  // (steps, batch, hidden size)
  at::Tensor hy, cy;
  at::Tensor workspace;  // undefined unless wanted
  int64_t form = kByCells;
};

struct RecurrentGradients {
  at::Tensor input, hx, cx, weight_ih, weight_hh, bias_ih, bias_hh;
};

// All of them defined, but that of cy for a GRU.
struct RecurrentGrads {
  at::Tensor output, hy, cy;
};

// The layer whose op's arguments, from the input on, begin at `first`.
RecurrentLayer layer_at(const c10::IValue* first, bool lstm);
void push_results(RecurrentResults made, torch::jit::Stack* stack);

// The results that are differentiable, with their gradient formula, by whatever the
// scheduler finds best.
RecurrentResults recurrent_layer(const RecurrentLayer& layer);

// A layer by its cells, step by step, and its gradients: without a formula of theirs.
RecurrentResults layer_by_cells(const RecurrentLayer& layer, bool train);
RecurrentGradients gradients_by_cells(const RecurrentLayer& layer,
                                      const RecurrentResults& made,
                                      const RecurrentGrads& grads);

// The same, by ops that PyTorch has gradient formulas for; and with a projection.
RecurrentResults differentiable_layer(const RecurrentLayer& layer);

}  // namespace xpurt
