// LSTM and GRU cells: PyTorch fuses them on accelerators and has no CPU kernel for the
// fused form. H is the hidden size; gates are [batch, gates * H]. The number of ops is
// as small as possible: in small layers the call of an op costs more than its
// computation.
#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/zeros_like.h>

#include "op/meta_call.h"
#include "op/op_record.h"

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

// Replaces that many arguments at the end of the stack by the results.
template <typename... Results>
void give(Stack* stack, size_t arguments, Results&&... results) {
  torch::jit::drop(*stack, arguments);
  torch::jit::push(*stack, std::forward<Results>(results)...);
}

// Checks the shapes of the gates of the input and of the hidden state, a state, and two
// biases.
void check_cell(c10::ArrayRef<c10::IValue> a, int64_t gates) {
  const Tensor &input = a[0].toTensor(), &hidden = a[1].toTensor();
  const Tensor& state = a[2].toTensor();
  const auto is_bias = [&](const c10::IValue& bias) {
    return !is_given(bias) || bias.toTensor().sizes() == input.sizes().slice(1);
  };
  TORCH_CHECK(input.dim() == 2 && state.dim() == 2 && input.sizes() == hidden.sizes() &&
                  input.size(0) == state.size(0) &&
                  input.size(1) == gates * state.size(1) && is_bias(a[3]) &&
                  is_bias(a[4]),
              "a cell of ", gates, " gates wants gates (batch, ", gates,
              " * hidden size), biases (", gates,
              " * hidden size) and a state (batch, hidden size); found gates ",
              input.sizes(), " and ", hidden.sizes(), ", state ", state.sizes());
}

// (input_gates, hidden_gates, cx, input_bias?, hidden_bias?) -> (hy, cy, workspace):
// the workspace is the activated gates, input, forget, cell and output.
void lstm_cell(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 5);
  check_cell(a, 4);
  const Tensor& cx = a[2].toTensor();
  Tensor workspace = a[0].toTensor() + a[1].toTensor();
  if (is_given(a[3])) workspace.add_(a[3].toTensor());
  if (is_given(a[4])) workspace.add_(a[4].toTensor());
  const auto gates = workspace.chunk(4, 1);
  workspace.narrow(1, 0, 2 * cx.size(1)).sigmoid_();
  gates[2].tanh_();
  gates[3].sigmoid_();
  Tensor cy = (gates[1] * cx).addcmul_(gates[0], gates[2]);
  Tensor hy = at::tanh(cy).mul_(gates[3]);
  give(stack, 5, std::move(hy), std::move(cy), std::move(workspace));
}

// (grad_hy?, grad_cy?, cx, cy, workspace, has_bias) -> (grad_gates, grad_cx,
// grad_bias)
void lstm_cell_backward(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 6);
  const Tensor &cx = a[2].toTensor(), &cy = a[3].toTensor();
  const Tensor& workspace = a[4].toTensor();
  const auto gates = workspace.chunk(4, 1);
  const Tensor &in = gates[0], &forget = gates[1], &cell = gates[2], &out = gates[3];
  const Tensor grad_hy = is_given(a[0]) ? a[0].toTensor() : at::zeros_like(cy);
  const Tensor squashed = at::tanh(cy);
  Tensor grad_state = at::tanh_backward(grad_hy * out, squashed);
  if (is_given(a[1])) grad_state += a[1].toTensor();
  Tensor grad_gates = at::empty_like(workspace, at::MemoryFormat::Contiguous);
  auto to = grad_gates.chunk(4, 1);
  at::sigmoid_backward_out(to[0], grad_state * cell, in);
  at::sigmoid_backward_out(to[1], grad_state * cx, forget);
  at::tanh_backward_out(to[2], grad_state * in, cell);
  at::sigmoid_backward_out(to[3], grad_hy * squashed, out);
  Tensor grad_bias = a[5].toBool() ? grad_gates.sum(0) : Tensor();
  give(stack, 6, grad_gates, grad_state * forget, grad_bias);
}

// (input_gates, hidden_gates, hx, input_bias?, hidden_bias?) -> (hy, workspace): the
// workspace is reset, update and new gate, hx, and the new gate's hidden part.
void gru_cell(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 5);
  check_cell(a, 3);
  const Tensor& hx = a[2].toTensor();
  const int64_t n = hx.size(1);
  const Tensor input = with_bias(a[0].toTensor(), a[3]);
  const Tensor hidden = with_bias(a[1].toTensor(), a[4]);
  const Tensor hidden_part = hidden.narrow(1, 2 * n, n);
  Tensor workspace = at::empty({hx.size(0), 5 * n}, hx.options());
  auto saved = workspace.chunk(5, 1);
  Tensor both = workspace.narrow(1, 0, 2 * n);  // reset and update
  at::add_out(both, input.narrow(1, 0, 2 * n), hidden.narrow(1, 0, 2 * n)).sigmoid_();
  at::addcmul_out(saved[2], input.narrow(1, 2 * n, n), saved[0], hidden_part).tanh_();
  saved[3].copy_(hx);
  saved[4].copy_(hidden_part);
  Tensor hy = at::lerp(saved[2], hx, saved[1]);
  give(stack, 5, std::move(hy), std::move(workspace));
}

// (grad_hy, workspace, has_bias) -> (grad_input_gates, grad_hidden_gates, grad_hx,
// grad_input_bias, grad_hidden_bias)
void gru_cell_backward(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
  const auto a = torch::jit::last(*stack, 3);
  const Tensor &grad = a[0].toTensor(), &workspace = a[1].toTensor();
  const int64_t n = grad.size(1);
  const auto saved = workspace.chunk(5, 1);
  const Tensor &reset = saved[0], &update = saved[1], &fresh = saved[2];
  Tensor grad_input = at::empty({grad.size(0), 3 * n}, workspace.options());
  Tensor grad_hidden = at::empty_like(grad_input);
  auto to = grad_input.chunk(3, 1);
  Tensor grad_hx = grad * update;
  at::tanh_backward_out(to[2], grad - grad_hx, fresh);
  at::sigmoid_backward_out(to[0], to[2] * saved[4], reset);
  at::sigmoid_backward_out(to[1], (saved[3] - fresh).mul_(grad), update);
  grad_hidden.narrow(1, 0, 2 * n).copy_(grad_input.narrow(1, 0, 2 * n));
  Tensor to_hidden_part = grad_hidden.narrow(1, 2 * n, n);
  at::mul_out(to_hidden_part, to[2], reset);
  const auto bias = [has_bias = a[2].toBool()](const Tensor& gates) {
    return has_bias ? gates.sum(0) : Tensor();
  };
  give(stack, 3, grad_input, grad_hidden, grad_hx, bias(grad_input), bias(grad_hidden));
}

const bool cells_registered = set_host_kernels(
    {{"aten::_thnn_fused_lstm_cell", "", &lstm_cell},
     {"aten::_thnn_fused_lstm_cell_backward_impl", "", &lstm_cell_backward},
     {"aten::_thnn_fused_gru_cell", "", &gru_cell},
     {"aten::_thnn_fused_gru_cell_backward", "", &gru_cell_backward}});

// PyTorch has a meta function for an LSTM cell only with biases, and none for GRU
// cells.
std::vector<Tensor> lstm_cell_meta(const Stack& a) {
  check_cell(a, 4);
  const auto like = [](const c10::IValue& value) {
    return at::empty_like(value.toTensor(), at::MemoryFormat::Contiguous);
  };
  return {like(a[2]), like(a[2]), like(a[0])};
}

std::vector<Tensor> gru_cell_meta(const Stack& a) {
  check_cell(a, 3);
  const Tensor& hx = a[2].toTensor();
  return {at::empty_like(hx, at::MemoryFormat::Contiguous),
          at::empty({hx.size(0), 5 * hx.size(1)}, hx.options())};
}

std::vector<Tensor> gru_cell_backward_meta(const Stack& a) {
  const Tensor& grad = a[0].toTensor();
  const int64_t gates = 3 * grad.size(1);
  const Tensor to_gates = at::empty({grad.size(0), gates}, grad.options());
  const Tensor bias = a[2].toBool() ? at::empty({gates}, grad.options()) : Tensor();
  return {to_gates, to_gates, at::empty(grad.sizes(), grad.options()), bias, bias};
}

const bool meta_functions_registered = register_meta_functions(
    {{"aten::_thnn_fused_lstm_cell", &lstm_cell_meta},
     {"aten::_thnn_fused_gru_cell", &gru_cell_meta},
     {"aten::_thnn_fused_gru_cell_backward", &gru_cell_backward_meta}});

}  // namespace
}  // namespace xpurt
