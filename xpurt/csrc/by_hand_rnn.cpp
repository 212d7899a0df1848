// LSTM and GRU cells: PyTorch fuses them on accelerators and has no CPU kernel for
// the fused form. H is the hidden size; gates are [batch, gates * H].
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>

#include "op_record.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

// An optional tensor that was left out is None, or an undefined tensor.
bool is_given(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined();
}

Tensor with_bias(const Tensor& gates, const c10::IValue& bias) {
  return is_given(bias) ? gates + bias.toTensor() : gates;
}

// The derivatives of sigmoid and tanh by their results.
Tensor sigmoid_slope(const Tensor& s) {
  return s * (1 - s);
}
Tensor tanh_slope(const Tensor& t) {
  return 1 - t * t;
}

Tensor defined_or_zeros(const c10::IValue& value, const Tensor& like) {
  return is_given(value) ? value.toTensor() : at::zeros_like(like);
}

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace):
// the workspace is the activated gates, input, forget, cell and output.
void lstm_cell(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 5);
  const Tensor sum =
      with_bias(a[0].toTensor(), a[3]) + with_bias(a[1].toTensor(), a[4]);
  const auto gates = sum.chunk(4, 1);
  const Tensor in = at::sigmoid(gates[0]);
  const Tensor forget = at::sigmoid(gates[1]);
  const Tensor cell = at::tanh(gates[2]);
  const Tensor out = at::sigmoid(gates[3]);
  Tensor cy = forget * a[2].toTensor() + in * cell;
  Tensor hy = out * at::tanh(cy);
  Tensor workspace = at::cat({in, forget, cell, out}, 1);
  torch::jit::drop(*stack, 5);
  torch::jit::push(*stack, std::move(hy), std::move(cy), std::move(workspace));
}

// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx,
// grad_bias)
void lstm_cell_backward(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 6);
  const Tensor cx = a[2].toTensor();
  const Tensor cy = a[3].toTensor();
  const auto gates = a[4].toTensor().chunk(4, 1);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor grad_hy = defined_or_zeros(a[0], cy);
  const Tensor squashed = at::tanh(cy);
  const Tensor grad_cell_state =
      grad_hy * out * tanh_slope(squashed) + defined_or_zeros(a[1], cy);
  Tensor grad_gates = at::cat({grad_cell_state * cell * sigmoid_slope(in),
                               grad_cell_state * cx * sigmoid_slope(forget),
                               grad_cell_state * in * tanh_slope(cell),
                               grad_hy * squashed * sigmoid_slope(out)},
                              1);
  Tensor grad_cx = grad_cell_state * forget;
  Tensor grad_bias = a[5].toBool() ? grad_gates.sum(0) : Tensor();
  torch::jit::drop(*stack, 6);
  torch::jit::push(*stack, std::move(grad_gates), std::move(grad_cx),
                   std::move(grad_bias));
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace): the
// workspace is reset, update and new gate, hx, and the new gate's hidden part.
void gru_cell(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 5);
  const auto input = with_bias(a[0].toTensor(), a[3]).chunk(3, 1);
  const auto hidden = with_bias(a[1].toTensor(), a[4]).chunk(3, 1);
  const Tensor hx = a[2].toTensor();
  const Tensor reset = at::sigmoid(input[0] + hidden[0]);
  const Tensor update = at::sigmoid(input[1] + hidden[1]);
  const Tensor fresh = at::tanh(input[2] + reset * hidden[2]);
  Tensor hy = (hx - fresh) * update + fresh;
  Tensor workspace = at::cat({reset, update, fresh, hx, hidden[2]}, 1);
  torch::jit::drop(*stack, 5);
  torch::jit::push(*stack, std::move(hy), std::move(workspace));
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx,
// grad_input_bias, grad_hidden_bias)
void gru_cell_backward(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 3);
  const Tensor grad = a[0].toTensor();
  const auto saved = a[1].toTensor().chunk(5, 1);
  const Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2];
  const Tensor &hx = saved[3], &hidden_new = saved[4];
  const bool has_bias = a[2].toBool();
  const Tensor grad_new = grad * (1 - update) * tanh_slope(fresh);
  const Tensor grad_reset = grad_new * hidden_new * sigmoid_slope(reset);
  const Tensor grad_update = grad * (hx - fresh) * sigmoid_slope(update);
  Tensor grad_input = at::cat({grad_reset, grad_update, grad_new}, 1);
  Tensor grad_hidden = at::cat({grad_reset, grad_update, grad_new * reset}, 1);
  Tensor grad_hx = grad * update;
  Tensor input_bias = has_bias ? grad_input.sum(0) : Tensor();
  Tensor hidden_bias = has_bias ? grad_hidden.sum(0) : Tensor();
  torch::jit::drop(*stack, 3);
  torch::jit::push(*stack, std::move(grad_input), std::move(grad_hidden),
                   std::move(grad_hx), std::move(input_bias), std::move(hidden_bias));
}

const bool cells_registered = set_host_kernels(
    {{"aten::_thnn_fused_lstm_cell", "", &lstm_cell},
     {"aten::_thnn_fused_lstm_cell_backward_impl", "", &lstm_cell_backward},
     {"aten::_thnn_fused_gru_cell", "", &gru_cell},
     {"aten::_thnn_fused_gru_cell_backward", "", &gru_cell_backward}});

}  // namespace
}  // namespace xpurt
