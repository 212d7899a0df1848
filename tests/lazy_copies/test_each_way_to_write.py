"""Each way to write to a tensor leaves its lazy copy, or what it is a copy of, alone."""

import pytest
import torch
from lazy_copies.ways_to_write import OF_CPU, OF_XPU, WAYS

from xpurt import _C

pytestmark = [
    pytest.mark.usefixtures("lazily"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method.*:DeprecationWarning"),
]

CASES = [
    *((side, name) for side in ("cpu", "xpu") for name in WAYS),
    *(("cpu", name) for name in OF_CPU),
    *(("xpu", name) for name in OF_XPU),
]


@pytest.mark.parametrize("writes_to", ["the copy", "its source"])
@pytest.mark.parametrize(("side", "name"), CASES)
def test_a_write_is_not_seen_on_the_other_side(
    side: str, name: str, writes_to: str
) -> None:
    values = torch.arange(24.0).view(4, 6)
    other = "xpu" if side == "cpu" else "cpu"
    if writes_to == "the copy":
        left = values.to(other).clone()
        written = left.to(side)
    else:
        written = values.to(side).clone()
        left = written.to(other)
    assert _C.is_lazy(left)
    {**WAYS, **OF_CPU, **OF_XPU}[name](written)
    torch.xpu.synchronize()
    assert left.tolist() == values.tolist()
    assert written.tolist() != values.tolist()
