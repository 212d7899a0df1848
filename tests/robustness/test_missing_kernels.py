"""An op without any kernel: the error has the op, the device and the remedy."""

from collections.abc import Iterator

import pytest
import torch

import xpurt
from xpurt import _C

WAY_OUT = r'register a kernel for it with torch\.library, for "xpu" or "cpu"'


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    made = torch.library.Library("xpurt_test_robustness", "DEF")
    made.define("elsewhere(Tensor x) -> Tensor")
    made.impl("elsewhere", lambda x: x, "CUDA")
    made.define("nowhere(Tensor[] x, int n) -> ()")
    made.define("later(Tensor x) -> Tensor")
    yield made
    made._destroy()


def told(op: str) -> str:
    return (
        rf"^xpurt_test_robustness::{op} is not implemented on xpu:0 \(.+\): .*{WAY_OUT}"
    )


def test_an_op_of_another_device(
    library: torch.library.Library, xpu: torch.device
) -> None:
    ops = torch.ops.xpurt_test_robustness
    x = torch.ones(3, device=xpu)
    before = _C.live_memory()
    with pytest.raises(NotImplementedError, match=told("elsewhere")) as caught:
        ops.elsewhere(x)
    assert any(d.name in str(caught.value) for d in xpurt.physical_devices())
    del caught
    with pytest.raises(NotImplementedError, match=told("nowhere")):
        ops.nowhere([x, x], 2)
    assert _C.live_memory() == before
    assert (x + 1).tolist() == [2, 2, 2]


@pytest.mark.filterwarnings("error")
def test_no_copies_are_announced_for_it(
    library: torch.library.Library, xpu: torch.device
) -> None:
    _C.set_fallback_mode("warn")
    with pytest.raises(NotImplementedError, match="not implemented on xpu:0"):
        torch.ops.xpurt_test_robustness.elsewhere(torch.ones(3, device=xpu))


def test_a_kernel_may_come_later(
    library: torch.library.Library, xpu: torch.device
) -> None:
    later = torch.ops.xpurt_test_robustness.later
    x = torch.ones(3, device=xpu)
    with pytest.raises(NotImplementedError):
        later(x)
    library.impl("later", lambda x: x + 1, "CPU")
    _C.set_fallback_mode("silent")
    result = later(x)
    assert (result.device, result.tolist()) == (xpu, [2, 2, 2])
    library.impl("later", lambda x: x * 5, "XPU")
    assert later(x).tolist() == [5, 5, 5]


def test_an_op_of_pytorch_s(xpu: torch.device) -> None:
    with pytest.raises(
        NotImplementedError, match=r"aten::_cslt_compress is not .* on xpu:0 \("
    ):
        torch.ops.aten._cslt_compress(torch.ones(3, device=xpu))
