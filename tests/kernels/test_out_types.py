"""Results that go to an out= of another type than their own."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import xpurt

X = torch.tensor([[-1.5, 0.25, 2.0], [3.5, -0.75, 1.0], [0.5, 4.0, -2.5]])

REFUSE: dict[str, Callable[..., Any]] = {
    "abs": torch.abs,
    "ceil": torch.ceil,
    "heaviside": lambda x, out: torch.heaviside(x, x, out=out),
    "softshrink": torch._C._nn.softshrink,
    "cross": lambda x, out: torch.linalg.cross(x, x.flip(0), out=out),
    "addmv": lambda x, out: torch.addmv(x[0], x, x[1], out=out),
    "tril": torch.tril,
    "masked_select": lambda x, out: torch.masked_select(x, x > 0, out=out),
    "kthvalue": lambda x, out: torch.kthvalue(x, 2, out=(out, indices(out))),
    "topk": lambda x, out: torch.topk(x, 2, out=(out, indices(out))),
}
CONVERT: dict[str, Callable[..., Any]] = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "exp": torch.exp,
    "sum": lambda x, out: torch.sum(x, 0, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "mul": lambda x, out: torch.mul(x, 2, out=out),
}


def indices(out: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.int64, device=out.device)


@pytest.mark.parametrize("op", REFUSE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_what_the_cpu_refuses_is_refused(
    op: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    with pytest.raises(RuntimeError) as on_cpu:
        REFUSE[op](X, out=torch.empty(0, dtype=dtype))
    with xpurt.kernel_policy("sycl"), pytest.raises(RuntimeError) as found:
        REFUSE[op](X.to(xpu), out=torch.empty(0, dtype=dtype, device=xpu))
    assert type(found.value) is type(on_cpu.value)
    assert str(found.value).splitlines()[0] == str(on_cpu.value).splitlines()[0]


@pytest.mark.parametrize("op", CONVERT)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.complex64])
def test_what_the_cpu_converts_is_converted(
    op: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    expected = torch.empty(0, dtype=dtype)
    CONVERT[op](X, out=expected)
    with xpurt.kernel_policy("sycl"):
        found = torch.empty(0, dtype=dtype, device=xpu)
        CONVERT[op](X.to(xpu), out=found)
    torch.testing.assert_close(found.cpu(), expected, rtol=2e-3, atol=1e-3)
