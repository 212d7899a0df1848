// One layer of an LSTM or a GRU in one direction: the arguments and results of the ops
// xpurt::lstm_layer and xpurt::gru_layer.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <array>

namespace xpurt {

// The tensors of a layer, or their gradients. Rows of weights, and biases, are ordered
// by gates as in PyTorch: input, forget, cell and output of an LSTM, reset, update and
// new of a GRU.
struct RecurrentTensors {
  at::Tensor input;                 // (steps, batch, size)
  at::Tensor hx, cx;                // (batch, hidden size); a GRU has no cx
  at::Tensor weight_ih, weight_hh;  // (gates * hidden size, size) and (.., hidden size)
  at::Tensor bias_ih, bias_hh;      // (gates * hidden size), or undefined

  // In the order of the ops' arguments.
  std::array<at::Tensor*, 7> all() {
    return {&input, &hx, &cx, &weight_ih, &weight_hh, &bias_ih, &bias_hh};
  }
};

struct RecurrentLayer : RecurrentTensors {
  bool reverse = false;   // from the last step to the first
  at::Tensor projection;  // of the state, or undefined. The two ops do not take it

  bool lstm() const { return cx.defined(); }
  int64_t gates() const { return lstm() ? 4 : 3; }
  int64_t steps() const { return input.size(0); }
  int64_t batch() const { return input.size(1); }
  int64_t hidden_size() const { return hx.size(1); }
};

// The code that computed a layer: oneDNN on the physical device of that number, or one
// of these. The same code has to compute the layer's gradients.
constexpr int64_t kByCells = -1;
constexpr int64_t kByPyTorch = -2;

// Gradients of the results have the same structure, without a workspace.
struct RecurrentResults {
  at::Tensor output;  // (steps, batch, hidden size)
  at::Tensor hy, cy;
  at::Tensor workspace;  // for the gradients; undefined if none are needed
  int64_t form = kByCells;
};

// A tensor of the stack; undefined for None.
inline at::Tensor tensor_or_none(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor() : at::Tensor();
}

// Reads arguments or results of an op, the first of which is at `first`.
inline RecurrentTensors tensors_at(const c10::IValue* first) {
  RecurrentTensors found;
  for (at::Tensor* each : found.all()) *each = tensor_or_none(*first++);
  return found;
}
inline RecurrentLayer layer_at(const c10::IValue* first) {
  return {tensors_at(first), first[7].toBool()};
}
inline RecurrentResults results_at(const c10::IValue* first) {
  return {first[0].toTensor(), first[1].toTensor(), tensor_or_none(first[2]),
          tensor_or_none(first[3]), first[4].toInt()};
}

}  // namespace xpurt
