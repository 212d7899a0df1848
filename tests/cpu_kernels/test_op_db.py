"""Rows on CPU tensors give what PyTorch's kernels give, on samples of its database of
ops: results, strides, written arguments, gradients, and errors."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map_only

import xpurt
from xpurt.testing.oracle import (
    Comparison,
    Disagreement,
    compare_errors,
    copied,
    outcome,
)
from xpurt_tools.conformance.check_op import existing
from xpurt_tools.conformance.databases import Entry, of_pytorch
from xpurt_tools.conformance.spread import spread
from xpurt_tools.conformance.tolerance import tolerance

pytestmark = [pytest.mark.usefixtures("mapped"), pytest.mark.takes_minutes]

# Some samples in bfloat16 have equal elements, whose order is open.
WITH_TIES = ("argsort", "sort")

PARTS = 12  # of the database; all but a sample are slow: kernels are built for them
SAMPLES = 2

# Their results are not determined.
UNDETERMINED = (
    "empty",
    "new_empty",
    "svd_lowrank",
    "pca_lowrank",
)


@cache
def ops() -> list[Entry]:
    return [
        entry
        for entry in of_pytorch()
        if entry.kind == "op" and not entry.name.startswith(UNDETERMINED)
    ]


def called(
    op: Any, given: tuple[Any, Any, Any], in_place: bool
) -> tuple[Any, Exception | None]:
    """The result, the arguments after the call, and the gradients of these; or the
    exception."""
    torch.manual_seed(0)
    given = copied(given, torch.device("cpu"))
    if in_place:
        given = tree_map_only(torch.Tensor, torch.Tensor.detach, given)
    value, args, kwargs = given
    form = op.inplace_variant if in_place else op.op
    result, error = outcome(form, value, *args, **kwargs)
    return (result, given, gradients(result, given)), error


def gradients(result: Any, given: Any) -> Any:
    results = [
        each
        for each in tree_leaves(result)
        if isinstance(each, torch.Tensor)
        and each.grad_fn is not None
        and each.layout is torch.strided
    ]
    wanted = [
        each
        for each in tree_leaves(given)
        if isinstance(each, torch.Tensor) and each.requires_grad
    ]
    if not results or not wanted:
        return []
    ones = [torch.ones_like(each) for each in results]
    found, error = outcome(
        torch.autograd.grad, results, wanted, ones, allow_unused=True
    )
    return type(error).__name__ if error else found


def widened(given: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """The same call in float64."""

    def widen(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        return tensor.detach().double().requires_grad_(tensor.requires_grad)

    wide: tuple[Any, Any, Any] = tree_map_only(torch.Tensor, widen, given)
    return wide


def is_as_exact(stock: Any, by_rows: Any, exact: Any) -> bool:
    """Whether no tensor is further from the result in float64 than twice the distance
    of PyTorch's kernel."""
    leaves = [tree_leaves(tree) for tree in (stock, by_rows, exact)]
    if len({len(each) for each in leaves}) != 1:
        return False
    return all(
        is_near(*tensors)
        for tensors in zip(*leaves, strict=True)
        if isinstance(tensors[0], torch.Tensor)
    )


def is_near(stock: torch.Tensor, by_rows: torch.Tensor, exact: torch.Tensor) -> bool:
    if not stock.is_floating_point() or stock.layout is not torch.strided:
        return torch.equal(stock, by_rows)
    if stock.numel() == 0:
        return True
    errors = [float((each.double() - exact).abs().max()) for each in (stock, by_rows)]
    return errors[1] <= 2 * errors[0]


def difference(
    op: Any, given: tuple[Any, Any, Any], in_place: bool, compare: Comparison
) -> str:
    """What differs between the kernels in this call; "" if nothing does."""
    stock, error = called(op, given, in_place)
    with xpurt.cpu_kernels("sycl"):
        by_rows, other = called(op, given, in_place)
    try:
        compare_errors(error, other, "a row")
        compare("of", stock, by_rows)
    except Disagreement as found:
        exact, failed = called(op, widened(given), in_place)
        rounded = error is None and other is None and failed is None
        return "" if rounded and is_as_exact(stock, by_rows, exact) else str(found)
    return ""


def differences(entry: Entry, dtype: torch.dtype) -> Iterator[str]:
    op, bound = entry.info, tolerance(entry.info, dtype)
    compare = Comparison(bound.rtol, bound.atol)
    backward = dtype in op.supported_backward_dtypes("cpu")
    samples = existing(op.sample_inputs("cpu", dtype, requires_grad=backward))
    for number, sample in spread(samples, SAMPLES):
        given = (sample.input, sample.args, sample.kwargs)
        for in_place in (False, True):
            if in_place and (op.inplace_variant is None or sample.broadcasts_input):
                continue
            if found := difference(op, given, in_place, compare):
                yield f"{entry.name} {dtype} {number} {in_place}: {found}"


def is_sample(dtype: torch.dtype, part: int) -> bool:
    return dtype is torch.float32 and part == 0


@pytest.mark.parametrize(
    ("dtype", "part"),
    [
        pytest.param(
            dtype,
            part,
            marks=() if is_sample(dtype, part) else pytest.mark.slow,
            id=f"{dtype}-{part}",
        )
        for dtype in (torch.float32, torch.bfloat16, torch.float64)
        for part in range(PARTS)
    ],
)
@pytest.mark.slow
def test_rows_agree_with_stock_kernels(dtype: torch.dtype, part: int) -> None:
    xpurt.op_report(reset=True)
    found = [
        line
        for entry in ops()[part::PARTS]
        if dtype in entry.dtypes
        and not (dtype is torch.bfloat16 and entry.name in WITH_TIES)
        for line in differences(entry, dtype)
    ]
    assert not found, "\n".join(found)
    on_cpu = [row for row in xpurt.op_report().rows if row.device == "cpu"]
    assert len(on_cpu) > 10
