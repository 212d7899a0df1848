"""`associative_scan` in programs on xpu, whose gradients PyTorch computes wrongly where it
stays one op."""

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.associative_scan import associative_scan
from torch.testing import assert_close

from xpurt import _C


def combined(left: tuple[Tensor, ...], right: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return left[0] * right[0], right[0] * left[1] + right[1]


def states(factor: Tensor, added: Tensor, reverse: bool = False) -> Tensor:
    """Each state is the one before it times a factor, plus what is added."""
    found = associative_scan(combined, (factor, added), 1, reverse)
    return torch.as_tensor(found[1]).sin()


def in_a_loop(factor: Tensor, added: Tensor, reverse: bool = False) -> Tensor:
    state, found = torch.zeros_like(added[:, 0]), []
    order = range(added.shape[1])
    for i in reversed(order) if reverse else order:
        state = factor[:, i] * state + added[:, i]
        found.append(state)
    return torch.stack(found[::-1] if reverse else found, 1).sin()


@pytest.mark.parametrize("reverse", [False, True])
def test_gradients(reverse: bool, xpu: torch.device) -> None:
    operands = [torch.rand(2, 5, 3, device=xpu, requires_grad=True) for _ in range(2)]
    compiled = torch.compile(states, backend="aot_eager", fullgraph=True)
    found, expected = compiled(*operands, reverse), in_a_loop(*operands, reverse)
    assert_close(found, expected)
    assert_close(
        torch.autograd.grad(found.sum(), operands),
        torch.autograd.grad(expected.sum(), operands),
    )


@pytest.mark.mappings("GPU")
@pytest.mark.filterwarnings("error:torch.compile runs")
def test_kernels(xpu: torch.device) -> None:
    if _C.host_reads(xpu.index):
        pytest.skip("the graph becomes native code, which takes longer to compile")
    operands = [torch.rand(2, 3, 3, device=xpu) for _ in range(2)]
    compiled = torch.compile(states, fullgraph=True)
    assert_close(compiled(*operands), in_a_loop(*operands))
