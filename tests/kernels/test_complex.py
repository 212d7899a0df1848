"""Rows that compute with complex numbers, or move them."""

from functools import cache
from typing import Any

import pytest
import torch

import xpurt
from kernels.kernel_forced import ON_THE_QUEUE, on_queue, tiers_of
from xpurt import _C
from xpurt.conformance.databases import of_pytorch
from xpurt.kernels import ROWS
from xpurt.kernels.element_types import COMPLEX
from xpurt.kernels.table import dtypes_of
from xpurt.testing.oracle import agree

ENTRIES = {
    "_index_put_impl_": "index_put",
    "div": "div.no_rounding_mode",
    "fill_": "fill",
    "index": "__getitem__",
    "rsub": "__rsub__",
}
WITHOUT = {"copy_", "zero_"}  # the database has none; see below
ROWS_OF_COMPLEX = sorted(
    {row.aten for row in ROWS if set(COMPLEX) <= set(dtypes_of(row))} - WITHOUT
)
DTYPES = (torch.complex64, torch.complex128)


@cache
def database() -> dict[str, Any]:
    return {entry.name: entry.info for entry in of_pytorch()}


@pytest.mark.parametrize("aten", ROWS_OF_COMPLEX)
def test_samples(aten: str, xpu: torch.device) -> None:
    """As on the CPU, forward and backward, and by the row."""
    info = database()[ENTRIES.get(aten, aten)]
    samples = info.sample_inputs(
        "cpu", torch.complex64, requires_grad=info.supports_autograd
    )
    some = [*samples]
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        for sample in some[:: max(len(some) // 4, 1)][:4]:
            arguments = (sample.input, *sample.args)
            agree(info.op, *arguments, rtol=1e-4, atol=1e-4, **sample.kwargs)
        torch.xpu.synchronize()
    op = f"aten::{aten}"
    assert (tiers_of(op) | tiers_of(f"{op}_")) & ON_THE_QUEUE


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
@pytest.mark.parametrize("op", [torch.cumsum, torch.cumprod, torch.prod, torch.sum])
@pytest.mark.parametrize(
    ("source", "dtype"),
    [
        (torch.float32, torch.complex64),
        (torch.int64, torch.complex128),
        (torch.bool, torch.complex64),
        (torch.complex64, torch.float64),
        (torch.complex128, torch.complex64),
    ],
)
def test_a_type_that_is_asked_for(
    op: Any, source: torch.dtype, dtype: torch.dtype, xpu: torch.device
) -> None:
    x = torch.tensor([[1, 2, 3], [4, 0, 5]]).to(source) * (1 + source.is_complex * 0.5j)
    with xpurt.kernel_policy("sycl"):
        found = op(x.to(xpu), 0, dtype=dtype)
    torch.testing.assert_close(found.cpu(), op(x, 0, dtype=dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", [torch.float32, torch.int64, *DTYPES])
def test_copies(dtype: torch.dtype, source: torch.dtype, xpu: torch.device) -> None:
    x = torch.arange(12).reshape(3, 4).to(source).t()
    if source.is_complex:
        x = x + 2j
    there = x.to(xpu)
    copied = on_queue("aten::copy_", lambda: there.to(dtype).contiguous())
    assert torch.equal(copied.cpu(), x.to(dtype).contiguous())
    assert torch.equal(copied.zero_().cpu(), torch.zeros(4, 3, dtype=dtype))


@pytest.mark.parametrize("scalar", [2, -0.5, 3 - 4j])
def test_numbers(scalar: complex, xpu: torch.device) -> None:
    x = torch.tensor([1 + 2j, -3j, 0.25])
    for op in (torch.add, torch.mul, torch.div, torch.pow, torch.eq):
        result = op(x.to(xpu), scalar)
        torch.testing.assert_close(result.cpu(), op(x, scalar))


def test_conjugates_are_seen_as_such(xpu: torch.device) -> None:
    x = torch.tensor([1 + 2j, -3j, 0.25])
    there = x.to(xpu)
    with xpurt.kernel_policy("sycl"):
        assert torch.equal((there.conj() * there).cpu(), x.conj() * x)
        assert torch.equal(there.conj().clone().cpu(), x.conj())
        assert torch.equal(there.conj().sum().cpu(), x.conj().sum())


def test_what_is_imaginary_is_not_lost_in_silence(xpu: torch.device) -> None:
    x = torch.tensor([1 + 2j, -3j]).to(xpu)
    with xpurt.kernel_policy("sycl"):
        torch.set_warn_always(True)
        with pytest.warns(UserWarning, match="discards the imaginary part"):
            torch.empty(2, device=xpu).copy_(x)
        torch.set_warn_always(False)
        with pytest.raises(RuntimeError, match="can't be cast"):
            torch.add(x, x, out=torch.empty(2, device=xpu))
        with pytest.raises(RuntimeError, match="abs"):
            x.abs_()
