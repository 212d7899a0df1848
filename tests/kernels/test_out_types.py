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
    "frexp": lambda x, out: torch.frexp(x, out=(torch.empty_like(x), out)),
}
CONVERT: dict[str, Callable[..., Any]] = {
    "add": lambda x, out: torch.add(x, x, out=out),
    "exp": torch.exp,
    "sum": lambda x, out: torch.sum(x, 0, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "mul": lambda x, out: torch.mul(x, 2, out=out),
    "cat": lambda x, out: torch.cat([x, x], out=out),
}


def indices(out: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.int64, device=out.device)


def refusal(
    op: Callable[..., Any], dtype: torch.dtype, device: str
) -> tuple[type, str]:
    """The type of the error, and its first line."""
    out = torch.empty(0, dtype=dtype, device=device)
    with pytest.raises((RuntimeError, TypeError)) as found:
        op(X.to(device), out=out)
    return type(found.value), str(found.value).splitlines()[0]


@pytest.mark.parametrize("op", REFUSE)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_what_the_cpu_refuses_is_refused(
    op: str, dtype: torch.dtype, xpu: torch.device
) -> None:
    with xpurt.kernel_policy("sycl"):
        found = refusal(REFUSE[op], dtype, str(xpu))
    assert found == refusal(REFUSE[op], dtype, "cpu")


@pytest.mark.parametrize("op", ["add", "exp", "mul", "cat"])
def test_floats_are_not_cast_to_integers(op: str, xpu: torch.device) -> None:
    with xpurt.kernel_policy("sycl"):
        found = refusal(CONVERT[op], torch.int32, str(xpu))
    assert found == refusal(CONVERT[op], torch.int32, "cpu")


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
