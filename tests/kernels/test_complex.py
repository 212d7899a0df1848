"""Rows that compute with complex numbers, or move them."""

from functools import cache
from typing import Any

import pytest
import torch

import xpurt
from kernels.database_names import NAMES, TESTED_APART
from kernels.kernel_forced import ON_THE_QUEUE, on_queue, tiers_of
from kernels.kernel_samples import has_elements
from xpurt import _C
from xpurt.kernels import ROWS
from xpurt.kernels.kinds.element_types import COMPLEX
from xpurt.kernels.rows.table import dtypes_of
from xpurt.testing.oracle import agree
from xpurt_tools.conformance.databases import of_pytorch

ENTRIES = NAMES | {
    "_logcumsumexp": "logcumsumexp",
    "_index_put_impl_": "index_put",
    "div": "div.no_rounding_mode",
    "fill_": "fill",
    "index": "__getitem__",
    "rsub": "__rsub__",
}
WITHOUT = {"copy_", "zero_"}  # the database has none; see below
ROWS_OF_COMPLEX = sorted(
    {row.aten for row in ROWS if set(COMPLEX) <= set(dtypes_of(row))}
    - WITHOUT
    - TESTED_APART
)
DTYPES = (torch.complex64, torch.complex128)


@cache
def database() -> dict[str, Any]:
    return {entry.name: entry.info for entry in of_pytorch()}


@pytest.mark.one_in(4)
@pytest.mark.beyond_cpu(aten=ROWS_OF_COMPLEX[::3])
@pytest.mark.parametrize("aten", ROWS_OF_COMPLEX)
def test_samples(aten: str, xpu: torch.device) -> None:
    """The results are the CPU's, forward and backward, and a row computes them."""
    info = database()[ENTRIES.get(aten, aten)]
    samples = info.sample_inputs(
        "cpu", torch.complex64, requires_grad=info.supports_autograd
    )
    some = list(filter(has_elements, samples))
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        for sample in some[:: max(len(some) // 2, 1)][:2]:
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


def numbers(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(1))


PRODUCTS: dict[str, Any] = {
    "mm": lambda a, b, c: a @ b,
    "mm of conjugates": lambda a, b, c: b.mH @ a.conj().t(),
    "addmm": lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2 - 1j),
    "addmm of a row": lambda a, b, c: torch.addmm(c[0].conj(), a, b, beta=2j),
    "addmm in place": lambda a, b, c: c.clone().addmm_(a, b),
    "baddbmm": lambda a, b, c: torch.baddbmm(
        c.expand(2, -1, -1) * float("nan"),
        a.expand(2, -1, -1),
        b.expand(2, -1, -1),
        beta=0,
    ),
    "bmm": lambda a, b, c: torch.stack([a, 2 * a]) @ torch.stack([b, b.conj()]),
    "addmv": lambda a, b, c: torch.addmv(c[:, 0], a, b[:, 1], beta=1j, alpha=2),
    "mv": lambda a, b, c: a.mv(b[:, 0]),
    "dot": lambda a, b, c: a[0].dot(b[:, 0]),
    "vdot": lambda a, b, c: a[0].vdot(b[:, 0]),
    "einsum": lambda a, b, c: torch.einsum("ij,jk->ki", a, b),
    "tensordot": lambda a, b, c: torch.tensordot(a, b, 1),
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=list(PRODUCTS))
@pytest.mark.parametrize("dtype", DTYPES)
def test_products(product: Any, dtype: torch.dtype, xpu: torch.device) -> None:
    near = 1e-5 if dtype == torch.complex64 else 1e-12
    for m, n, k in [(1, 1, 1), (3, 7, 20), (65, 70, 33), (2, 3, 0)]:
        shapes = (m, k), (k, n), (m, n)
        if k == 0 and product is not PRODUCTS["mm"]:
            continue
        if n == 1 and product is PRODUCTS["addmv"]:
            continue
        given = [numbers(*shape, dtype=dtype) for shape in shapes]
        _C.reset_op_report()
        with xpurt.kernel_policy("sycl"):
            found = product(*(x.to(xpu) for x in given))
        used = {row[0].split("::")[1].split(".")[0] for row in _C.op_report()}
        # A sum of products of one number each is none of matrices to einsum.
        assert k == 1 or used & {"mm", "addmm", "addmm_", "bmm", "baddbmm"}
        for op in used & {"mm", "addmm", "addmm_", "bmm", "baddbmm"}:
            assert tiers_of(f"aten::{op}") == {"sycl"}
        expected = product(*given)
        torch.testing.assert_close(found.cpu(), expected, rtol=near, atol=20 * near)


def test_products_of_what_does_not_fit(xpu: torch.device) -> None:
    a, b = torch.ones(2, 3).to(xpu), torch.ones(3, 2, dtype=torch.complex64).to(xpu)
    with xpurt.kernel_policy("sycl"):
        with pytest.raises(RuntimeError, match="same dtype"):
            a @ b
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            b @ b
        with pytest.raises(RuntimeError, match="without overflow"):
            torch.addmm(a[:, :2], a, b.real, alpha=1j)
        there = torch.empty(3, 3, dtype=torch.complex64, device=xpu).conj()
        torch.mm(b, 1j * b.mT, out=there)
    assert torch.equal(there.cpu(), torch.full((3, 3), 2j))


def test_sums_of_exponentials_at_the_edges(xpu: torch.device) -> None:
    inf, nan = float("inf"), float("nan")
    firsts = [complex(-inf, 0), complex(inf, 1), complex(nan, 0), complex(1, nan), 1e3]
    x = torch.tensor([[first, 0.5 - 1j, -300j, first, 2] for first in firsts])
    for dtype in DTYPES:
        found = on_queue(
            "aten::_logcumsumexp",
            lambda d=dtype: torch.logcumsumexp(x.to(d).to(xpu), 1),
        )
        expected = torch.logcumsumexp(x.to(dtype), 1)
        torch.testing.assert_close(found.cpu(), expected, equal_nan=True)


def test_conjugates_and_negatives_are_resolved_on_the_device(xpu: torch.device) -> None:
    x = numbers(4, 5, dtype=torch.complex64)
    there = x.to(xpu)
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        assert torch.equal(there.conj().clone().cpu(), x.conj())
        assert torch.equal(there.conj().imag.clone().cpu(), x.conj().imag)
        room = torch.zeros(4, 5, dtype=torch.complex128, device=xpu)
        room.conj().copy_(there.t().conj().t())
        assert torch.equal(room.cpu(), x.to(torch.complex128))
        room.conj().copy_(there)
        assert torch.equal(room.cpu(), x.conj().to(torch.complex128))
        room.conj().imag.copy_(there.real)
        assert torch.equal(room.cpu().imag, -x.real.double())
    assert not [row[0] for row in _C.op_report() if row[1] == "copy"]


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
