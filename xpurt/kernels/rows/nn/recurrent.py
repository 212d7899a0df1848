"""Rows of LSTM and GRU: layers and cells.

H is the hidden size. The gates of a sample are adjacent, in rows of 4 * H (input,
forget, cell, output) or 3 * H (reset, update, new). A work-item computes one element of
the state, (batch, H). The workspace is what PyTorch's gradient formula receives. For an
LSTM it holds the gates after their activations; for a GRU also the state before, and
the hidden part of the new gate.
"""

from dataclasses import dataclass
from typing import ClassVar

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.row import FLOATING_ONLY, BaseRow, Kind


@dataclass(frozen=True, slots=True)
class Recurrent(BaseRow):
    """A layer in one direction, or its gradients: by a oneDNN primitive, or else by the
    cells. `flops` are per weight, step and sequence. C++ handles the arguments."""

    template: ClassVar[str] = "recurrent"

    aten: str
    kind: Kind = FLOATING_ONLY
    flops: float = 2


# `at` is the offset in the first of `gates` gates; k is the number of a gate.
SHARED = """
#define state_place(gates, hidden_size)        \\
  const long n = (hidden_size), row = i / n;   \\
  const long column = i - row * n, at = row * (gates) * n + column;
#if HAS_input_bias
#define of_input(k) (input_gates_load(at + (k) * n) + input_bias_load(column + (k) * n))
#else
#define of_input(k) input_gates_load(at + (k) * n)
#endif
#if HAS_hidden_bias
#define of_hidden(k) \\
  (hidden_gates_load(at + (k) * n) + hidden_bias_load(column + (k) * n))
#else
#define of_hidden(k) hidden_gates_load(at + (k) * n)
#endif
#define slope_of_sigmoid(s) ((s) * (1 - (s)))
#define slope_of_tanh(t) (1 - (t) * (t))
"""

GATES = ("input_gates", "hidden_gates", "input_bias", "hidden_bias")

LSTM = Step(
    over="cx",
    also_reads=GATES,
    text="""
  state_place(4, cx_size(1))
  const C in = sigmoid_of(of_input(0) + of_hidden(0));
  const C forget = sigmoid_of(of_input(1) + of_hidden(1));
  const C cell = tanh(of_input(2) + of_hidden(2));
  const C out = sigmoid_of(of_input(3) + of_hidden(3));
  const C state = forget * cx_load(i) + in * cell;
  out0_store(i, out * tanh(state));
  out1_store(i, state);
  out2_store(at, in);
  out2_store(at + n, forget);
  out2_store(at + 2 * n, cell);
  out2_store(at + 3 * n, out);
""",
)

LSTM_BACKWARD = Step(
    over="cx",
    text="""
#if HAS_out0
  state_place(4, cx_size(1))
  const C in = workspace_load(at), forget = workspace_load(at + n);
  const C cell = workspace_load(at + 2 * n), out = workspace_load(at + 3 * n);
  const C squashed = tanh(cy_load(i));
  C grad = 0, grad_state = 0;
#if HAS_grad_hy
  grad = grad_hy_load(i);
  grad_state = grad * out * slope_of_tanh(squashed);
#endif
#if HAS_grad_cy
  grad_state += grad_cy_load(i);
#endif
  out0_store(at, grad_state * cell * slope_of_sigmoid(in));
  out0_store(at + n, grad_state * cx_load(i) * slope_of_sigmoid(forget));
  out0_store(at + 2 * n, grad_state * in * slope_of_tanh(cell));
  out0_store(at + 3 * n, grad * squashed * slope_of_sigmoid(out));
  out1_store(i, grad_state * forget);
#endif
""",
)

GRU = Step(
    over="hx",
    also_reads=GATES,
    text="""
  state_place(3, hx_size(1))
  const C reset = sigmoid_of(of_input(0) + of_hidden(0));
  const C update = sigmoid_of(of_input(1) + of_hidden(1));
  const C hidden = of_hidden(2), before = hx_load(i);
  const C fresh = tanh(of_input(2) + reset * hidden);
  out0_store(i, (before - fresh) * update + fresh);
  const long saved = row * 5 * n + column;
  out1_store(saved, reset);
  out1_store(saved + n, update);
  out1_store(saved + 2 * n, fresh);
  out1_store(saved + 3 * n, before);
  out1_store(saved + 4 * n, hidden);
""",
)

GRU_BACKWARD = Step(
    over="grad_hy",
    text="""
  state_place(3, grad_hy_size(1))
  const long saved = row * 5 * n + column;
  const C reset = workspace_load(saved), update = workspace_load(saved + n);
  const C fresh = workspace_load(saved + 2 * n), before = workspace_load(saved + 3 * n);
  const C hidden = workspace_load(saved + 4 * n), grad = grad_hy_load(i);
  const C to_fresh = grad * (1 - update) * slope_of_tanh(fresh);
  const C to_reset = to_fresh * hidden * slope_of_sigmoid(reset);
  const C to_update = grad * (before - fresh) * slope_of_sigmoid(update);
  out0_store(at, to_reset);
  out0_store(at + n, to_update);
  out0_store(at + 2 * n, to_fresh);
  out1_store(at, to_reset);
  out1_store(at + n, to_update);
  out1_store(at + 2 * n, to_fresh * reset);
  out2_store(i, grad * update);
""",
)


def sum_over_batch(gates: str, bias: str) -> Step:
    """`bias`, with one number per gate, is the sum of the rows of `gates`."""
    return Step(
        over=bias,
        text=f"""
  C sum = 0;
  for (long o = i; o < {gates}_numel; o += {bias}_numel) sum += {gates}_load(o);
  {bias}_store(i, sum);
""",
    )


ROWS = (
    Recurrent("xpurt::lstm_layer"),
    Recurrent("xpurt::lstm_layer_backward", flops=4),
    Recurrent("xpurt::gru_layer"),
    Recurrent("xpurt::gru_layer_backward", flops=4),
    CustomKernel(
        "_thnn_fused_lstm_cell",
        (LSTM,),
        FLOATING_ONLY,
        functions=SHARED,
        contiguous=(*GATES, "cx"),
        rows=("input_gates", "hidden_gates", "cx", "out0", "out1", "out2"),
        flops=30,
    ),
    CustomKernel(
        "_thnn_fused_lstm_cell_backward_impl",
        (LSTM_BACKWARD, sum_over_batch("out0", "out2")),
        FLOATING_ONLY,
        functions=SHARED,
        contiguous=("grad_hy", "grad_cy", "cx", "cy", "workspace"),
        flops=15,
    ),
    CustomKernel(
        "_thnn_fused_gru_cell",
        (GRU,),
        FLOATING_ONLY,
        functions=SHARED,
        contiguous=(*GATES, "hx"),
        rows=("input_gates", "hidden_gates", "hx", "out0", "out1"),
        flops=30,
    ),
    CustomKernel(
        "_thnn_fused_gru_cell_backward",
        (GRU_BACKWARD, sum_over_batch("out0", "out3"), sum_over_batch("out1", "out4")),
        FLOATING_ONLY,
        functions=SHARED,
        contiguous=("grad_hy", "workspace"),
        flops=10,
    ),
)
