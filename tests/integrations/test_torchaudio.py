"""An op of another library that has a kernel for the CPU and one of other ops: xpu takes
the CPU's where an integration asks for it, as for torchaudio's filter."""

import pytest
import torch
from torch import Tensor

import xpurt
from xpurt import _C

OP = "xpurt_test_filter::doubled_"


@pytest.fixture(scope="module", autouse=True)
def op() -> torch.library.Library:
    """Doubles a tensor, and adds 1 in the kernel that is made of other ops."""
    library = torch.library.Library("xpurt_test_filter", "DEF")
    library.define("doubled_(Tensor(a!) x) -> Tensor(a!)")
    library.impl("doubled_", lambda x: x.mul_(2).add_(1), "CompositeExplicitAutograd")
    library.impl("doubled_", lambda x: x.mul_(2), "CPU")
    return library


def call(x: Tensor) -> Tensor:
    result: Tensor = torch.ops.xpurt_test_filter.doubled_(x)
    return result


def test_the_cpu_s_kernel_is_taken(xpu: torch.device) -> None:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(OP, "XPU"):
        assert call(torch.ones(3, device=xpu)).tolist() == [3.0] * 3
        assert _C.prefer_cpu_kernel(OP, "")
    x = torch.ones(3, device=xpu)
    xpurt.op_report(reset=True)
    assert call(x) is x
    assert x.tolist() == [2.0] * 3
    tiers = {row.tier for row in xpurt.op_report().rows if row.op == OP}
    on_gpu = xpurt.get_xpu_mapping() in ("explicit", "GPU")
    assert tiers == {"copy" if on_gpu else "native"}


@pytest.mark.parametrize("name", ["xpurt_test_filter::none", "aten::relu", OP])
def test_others_are_left(name: str) -> None:
    if name == OP:
        _C.prefer_cpu_kernel(OP, "")
    assert not _C.prefer_cpu_kernel(name, "")
