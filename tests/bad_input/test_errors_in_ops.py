"""Ops that fail: nothing is leaked, and the stream works on.

A kernel that does not build: tests/kernels/test_programs.py. Work that fails on the
device: tests/streams/test_streams.py. Ctrl-C: tests/streams/test_interrupts.py.
"""

import gc
from collections.abc import Callable

import pytest
import torch

import xpurt
from xpurt import _C

FAILING: dict[str, tuple[type[Exception], Callable[[torch.Tensor], object]]] = {
    "shapes": (RuntimeError, lambda x: x + torch.ones(5, device=x.device)),
    "in place": (RuntimeError, lambda x: x.add_(x[:, None, None])),
    "singular": (RuntimeError, lambda x: torch.linalg.inv(torch.zeros_like(x))),
    "index": (IndexError, lambda x: x[torch.tensor([9], device=x.device)]),
    "gather": (RuntimeError, lambda x: x.gather(0, torch.full_like(x, 9).long())),
    "target": (
        IndexError,
        lambda x: torch.nn.functional.nll_loss(x, torch.full_like(x[0], 9).long()),
    ),
    "dtype": (RuntimeError, lambda x: x.int().add_(0.5)),
    "matrices": (RuntimeError, lambda x: x @ torch.ones(7, 2, device=x.device)),
}


def waited_for(op: Callable[[torch.Tensor], object], x: torch.Tensor) -> None:
    """A kernel's wrong index raises at the next wait, as IndexError for every op."""
    op(x)
    torch.xpu.synchronize()


@pytest.mark.parametrize("policy", ["native", "sycl"])
@pytest.mark.parametrize("name", list(FAILING))
def test_a_failing_op(name: str, policy: str, xpu: torch.device) -> None:
    kind, op = FAILING[name]
    x = torch.ones(3, 3, device=xpu)
    with xpurt.kernel_policy(policy):
        gc.collect()
        before = _C.live_memory()
        with pytest.raises((kind, IndexError)) as caught:
            waited_for(op, x)
        assert str(caught.value)
        del caught
        gc.collect()
        torch.xpu.synchronize()
        assert _C.live_memory() == before
        assert x.tolist() == [[1] * 3] * 3
        assert (x @ x).sum().item() == 27


@pytest.mark.usefixtures("xpu")
def test_layouts_that_xpu_does_not_have() -> None:
    with pytest.raises(NotImplementedError, match="no mkldnn layout"):
        torch.ones(3, device="xpu").to_mkldnn()


WRONG_RANKS: dict[str, Callable[[torch.Tensor], object]] = {
    "cat": lambda x: torch.cat([x, x[0]]),
    "out": lambda x: torch.cat([x, x[0]], out=torch.empty_like(x)),
    "dot": lambda x: torch.dot(x, x),
}


@pytest.mark.parametrize("op", WRONG_RANKS)
def test_an_op_made_of_others_has_its_own_message(op: str, xpu: torch.device) -> None:
    x = torch.ones(3, 3)
    with pytest.raises(RuntimeError) as expected:
        WRONG_RANKS[op](x)
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError) as found:
        WRONG_RANKS[op](x.to(xpu))
    assert str(found.value) == str(expected.value)
