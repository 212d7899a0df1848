"""Every pointwise row against PyTorch's CPU kernel."""

from collections.abc import Callable
from operator import attrgetter

import pytest
import torch
from kernel_forced import forced
from kernel_samples import (
    DTYPE_OF_LETTER,
    Overload,
    arguments,
    call,
    functional,
    numbers,
    overloads,
)
from kernel_tolerance import assert_near

from xpurt.kernels import ROWS
from xpurt.kernels.row import Row

POINTWISE = [row for row in ROWS if isinstance(row, Row)]
rows = pytest.mark.parametrize("row", POINTWISE, ids=attrgetter("aten"))


# PyTorch's kernel multiplies by a sixth that is rounded to float.
LOOSE = {"hardsigmoid_backward": 1000.0}


def to(device: torch.device, values: list[object]) -> list[object]:
    return [v.to(device) if isinstance(v, torch.Tensor) else v for v in values]


def check(
    row: Row,
    overload: Overload,
    dtype: torch.dtype,
    make: Callable[[int, torch.dtype], torch.Tensor],
    device: torch.device,
    move: Callable[[list[object]], list[object]] | None = None,
) -> None:
    """Compares all variants of one overload, the arguments' values included."""
    for variant in row.expressions:
        expected_args = arguments(row, overload, make, dtype, variant)
        actual_args = (move or (lambda values: to(device, values)))(
            arguments(row, overload, make, dtype, variant)
        )
        expected_out = actual_out = None
        if overload.has_out:
            result = call(functional(row), expected_args)
            expected_out = torch.empty(0, dtype=result.dtype)
            actual_out = torch.empty(0, dtype=result.dtype, device=device)
        expected = call(overload, expected_args, expected_out)
        with forced(overload.name):
            actual = call(overload, actual_args, actual_out)
        # The strides of what was there before may have gaps, which .cpu() closes.
        is_new = not overload.in_place
        assert_near(actual, expected, LOOSE.get(row.aten, 1), check_stride=is_new)
        for mine, theirs in zip(actual_args, expected_args, strict=True):
            if isinstance(theirs, torch.Tensor):
                assert_near(mine, theirs, check_stride=False)


def native_takes(row: Row, dtype: torch.dtype) -> bool:
    """Whether PyTorch's own kernel takes tensors of the dtype."""
    make = lambda k, d: numbers(row, d, (3,), k)  # noqa: E731
    overload = functional(row)
    variant = next(iter(row.expressions))
    try:
        call(overload, arguments(row, overload, make, dtype, variant))
    except (RuntimeError, NotImplementedError):
        return False
    return True


@rows
def test_every_dtype(row: Row, xpu: torch.device) -> None:
    ran = 0
    for letter in row.kind.dtypes:
        dtype = DTYPE_OF_LETTER[letter]
        if not native_takes(row, dtype):
            continue
        check(
            row, functional(row), dtype, lambda k, d: numbers(row, d, (1037,), k), xpu
        )
        ran += 1
    assert ran


def dtype_of(row: Row) -> torch.dtype:
    return torch.float32 if "f" in row.kind.dtypes else torch.int32


def strided(row: Row, layout: str) -> Callable[[int, torch.dtype], torch.Tensor]:
    """Makes operands of one shape; only operand 0 is as it is allocated."""

    def make(k: int, dtype: torch.dtype) -> torch.Tensor:
        if layout == "0-dim":
            return numbers(row, dtype, (), k)
        if layout == "empty":
            return numbers(row, dtype, (0, 3), k)
        if layout == "transposed":
            return numbers(row, dtype, (7, 19) if k == 0 else (19, 7), k).t()[:7, :7]
        if layout == "sliced":
            return numbers(row, dtype, (4, 10, 9), k)[:, ::2, 1::3]
        if layout == "channels_last":
            made = numbers(row, dtype, (2, 3, 5, 4), k)
            return made.to(memory_format=torch.channels_last) if k == 0 else made
        return numbers(row, dtype, (3, 1, 5, 2, 6) if k == 0 else (4, 1, 2, 1), k)

    return make


@pytest.mark.parametrize(
    "layout",
    ["0-dim", "empty", "transposed", "sliced", "channels_last", "broadcast"],
)
@rows
def test_layouts(row: Row, layout: str, xpu: torch.device) -> None:
    first = functional(row)
    if layout == "broadcast" and (first.tensors < 2 or first.in_place):
        pytest.skip("there is one operand, or the result has the first one's shape")
    if layout == "channels_last" and row.aten == "rsub":
        pytest.skip("PyTorch lets the second operand of rsub decide the format")
    if layout == "empty" and row.zero_dim:
        pytest.skip("an operand has one element")

    def move(values: list[object]) -> list[object]:
        """Keeps the strides, gaps included."""
        moved: list[object] = []
        for value in values:
            if not isinstance(value, torch.Tensor):
                moved.append(value)
                continue
            last = sum(
                (n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True)
            )
            if value.numel() == 0:
                moved.append(value.to(xpu))
                continue
            whole = value.as_strided((last + 1,), (1,)).to(xpu)
            moved.append(whole.as_strided(value.shape, value.stride()))
        return moved

    check(row, functional(row), dtype_of(row), strided(row, layout), xpu, move)


@rows
def test_other_overloads(row: Row, xpu: torch.device) -> None:
    """In place, into out=, and with scalars in the place of tensors."""
    first = functional(row)
    dtype = dtype_of(row)
    if row.kind.result == "boolean":
        dtype = torch.bool if "t" in row.kind.dtypes else dtype
    for overload in overloads(row):
        if overload.op is first.op or (
            overload.has_out and overload.tensors < first.tensors
        ):
            continue
        if overload.tensors == 0:
            continue
        if overload.name.startswith("aten::pow") and overload.tensors < 2:
            continue  # exponents that have a form of their own are tested apart
        check(row, overload, dtype, lambda k, d: numbers(row, d, (33,), k), xpu)
