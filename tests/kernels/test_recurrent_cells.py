"""The fused cells of LSTM and GRU layers, which PyTorch has no CPU kernels of: what
they give is what its CPU's cells of many ops give."""

from collections.abc import Callable

import pytest
import torch

import xpurt
from kernels.kernel_forced import tiers_of
from xpurt import _C
from xpurt.testing.oracle import agree

NEAR = {torch.float64: 1e-9, torch.float32: 1e-5, torch.bfloat16: 4e-2}
TensorTuple = tuple[torch.Tensor, ...]


def lstm(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *w: torch.Tensor):
    return torch.lstm_cell(x, (h, c), *w)


def lstm_state(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *w: torch.Tensor):
    return torch.lstm_cell(x, (h, c), *w)[1]


def lstm_output(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *w: torch.Tensor):
    return torch.lstm_cell(x, (h, c), *w)[0]


def gru(x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, *w: torch.Tensor):
    return torch.gru_cell(x, h, *w)


def operands(
    gates: int, bias: bool, dtype: torch.dtype, batch: int = 3, hidden: int = 5
) -> list[torch.Tensor]:
    shapes: list[tuple[int, ...]] = [(batch, 4), (batch, hidden), (batch, hidden)]
    shapes += [(gates * hidden, 4), (gates * hidden, hidden)]
    shapes += [(gates * hidden,)] * 2 if bias else []
    return [torch.randn(s, dtype=dtype).requires_grad_() for s in shapes]


@pytest.mark.parametrize("policy", ["auto", "sycl", "native"])
@pytest.mark.parametrize("bias", [True, False], ids=["biases", "no biases"])
@pytest.mark.parametrize(
    "cell", [lstm, lstm_state, lstm_output, gru], ids=lambda f: f.__name__
)
def test_cells(
    cell: Callable[..., TensorTuple], bias: bool, policy: str, xpu: torch.device
) -> None:
    kind, gates = ("gru", 3) if cell is gru else ("lstm", 4)
    with xpurt.kernel_policy(policy):
        for dtype, near in NEAR.items():
            given = operands(gates, bias, dtype)
            _C.reset_op_report()
            agree(cell, *given, device=xpu, rtol=near, atol=near)
            torch.xpu.synchronize()
            backward = "backward" if cell is gru else "backward_impl"
            for op in (f"{kind}_cell", f"{kind}_cell_{backward}"):
                tiers = tiers_of(f"aten::_thnn_fused_{op}")
                assert len(tiers) == 1, op
                assert policy != "sycl" or tiers == {"sycl"}, op


@pytest.mark.parametrize(("kind", "gates"), [("lstm", 4), ("gru", 3)])
def test_operands_that_lie_apart(kind: str, gates: int, xpu: torch.device) -> None:
    """Gates of every second row, a state that is one row for all of the batch."""
    fused = getattr(torch.ops.aten, f"_thnn_fused_{kind}_cell")
    whole = [torch.randn(6, gates * 5), torch.randn(6, gates * 5), torch.randn(1, 5)]
    apart = [whole[0][::2], whole[1][::2], whole[2].expand(3, 5)]
    for policy in ("sycl", "native"):
        with xpurt.kernel_policy(policy):
            expected = fused(*(t.contiguous().to(xpu) for t in apart))
            on_xpu = [t.to(xpu) for t in whole]
            found = fused(on_xpu[0][::2], on_xpu[1][::2], on_xpu[2].expand(3, 5))
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("kind", "gates"), [("lstm", 4), ("gru", 3)])
def test_gates_that_do_not_fit_are_refused(
    kind: str, gates: int, xpu: torch.device
) -> None:
    fused = getattr(torch.ops.aten, f"_thnn_fused_{kind}_cell")
    state, right = torch.zeros(3, 5, device=xpu), torch.zeros(3, gates * 5, device=xpu)
    bias = torch.zeros(gates * 5, device=xpu)
    wrong = torch.zeros(3, gates * 5 - 1, device=xpu)
    for policy in ("auto", "sycl"):
        with xpurt.kernel_policy(policy):
            for given in (
                (wrong, right, state),
                (right, wrong, state),
                (right, right, state[:2]),
                (right, right, state, bias[1:], bias),
                (right, right, state, bias, bias[1:]),
            ):
                with pytest.raises(RuntimeError):
                    fused(*given)
