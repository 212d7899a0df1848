"""Every pointwise row against PyTorch's CPU kernel."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pytest
import torch

from kernels.kernel_forced import forced
from kernels.kernel_places import Place, places
from kernels.kernel_samples import (
    DTYPE_OF_LETTER,
    Overload,
    arguments,
    call,
    functional,
    numbers,
    overloads,
)
from kernels.kernel_tolerance import assert_near
from xpurt.kernels import ROWS
from xpurt.kernels.kinds.element_types import INTS
from xpurt.kernels.kinds.row import Row

POINTWISE = [row for row in ROWS if isinstance(row, Row)]


def name_of(row: Row) -> str:
    """Two rows are called div, and two are called round."""
    by_variant = row.aten == "div" and "" not in row.expressions
    to_decimals = "decimals" in row.overloads
    return row.aten + "_by_variant" * by_variant + "_to_decimals" * to_decimals


# Of each template, prelude and rule of types, for the mappings that run a few.
SAMPLE = [
    row
    for row in POINTWISE
    if name_of(row)
    in {
        "add",
        "div",
        "div_by_variant",
        "eq",
        "exp",
        "floor_divide",
        "where",
        "masked_fill",
        "gelu",
        "relu",
        "threshold_backward",
        "zero_",
        "copy_",
    }
]

# Those that run in every dtype, layout and overload by default, which is what takes the
# time: kernels are built for each. One in six, and the same ones in each run.
IN_FULL = [
    row
    for row in POINTWISE
    if row in SAMPLE or zlib.crc32(name_of(row).encode()) % 6 == 0
]

# PyTorch's kernel multiplies by a sixth that is rounded to float.
LOOSE = {"hardsigmoid_backward": 1000.0}
# PyTorch's kernel has some 6 digits of it in any type: see test_special_functions.py.
LOOSE_IN_DOUBLE = {"special_airy_ai": 1e7}


def check(
    row: Row,
    overload: Overload,
    dtype: torch.dtype,
    make: Callable[[int, torch.dtype], torch.Tensor],
    place: Place,
) -> None:
    """Compares all variants of one overload, the arguments' values included."""
    for variant in row.expressions:
        expected_args = arguments(row, overload, make, dtype, variant)
        actual_args = [
            moved(v, place.device) if isinstance(v, torch.Tensor) else v
            for v in arguments(row, overload, make, dtype, variant)
        ]
        expected_out = actual_out = None
        if overload.has_out:
            result = call(functional(row), expected_args)
            expected_out = torch.empty(0, dtype=result.dtype)
            actual_out = torch.empty(0, dtype=result.dtype, device=place.device)
        expected = call(overload, expected_args, expected_out)
        with place.chosen(), forced(overload.name):
            actual = call(overload, actual_args, actual_out)
        place.check(overload.name)
        # The strides of what was there before may have gaps, which .cpu() closes.
        is_new = not overload.in_place
        loose = LOOSE.get(row.aten, 1)
        if dtype == torch.float64:
            loose = LOOSE_IN_DOUBLE.get(row.aten, loose)
        assert_near(actual, expected, loose, check_stride=is_new)
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


@dataclass(frozen=True)
class Case:
    """One overload with operands of one dtype and layout."""

    overload: Overload
    dtype: torch.dtype
    layout: str

    def __str__(self) -> str:
        return f"{self.overload.op}, {self.dtype}, {self.layout}"


def operands(row: Row, layout: str) -> Callable[[int, torch.dtype], torch.Tensor]:
    """Makes operand k in the layout."""

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
        if layout == "broadcast":
            return numbers(row, dtype, (3, 1, 5, 2, 6) if k == 0 else (4, 1, 2, 1), k)
        return numbers(row, dtype, (1037,), k)

    return make


def moved(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Keeps the strides, gaps included."""
    if value.numel() == 0:
        return value.to(device)
    last = sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    whole = value.as_strided((last + 1,), (1,)).to(device)
    return whole.as_strided(value.shape, value.stride())


def dtypes_of(row: Row) -> list[torch.dtype]:
    """What the row and PyTorch's own kernel take."""
    found = [DTYPE_OF_LETTER[letter] for letter in row.kind.dtypes]
    first = functional(row)
    return [d for d in found if native_takes(row, d) and not declines(row, first, d)]


def declines(row: Row, overload: Overload, dtype: torch.dtype) -> bool:
    """Integers are divided by a scalar, which is known not to be zero, or natively."""
    divisors = [a for a in overload.arguments if a.name == "other"]
    by_tensor = any("Tensor" in str(a.type) for a in divisors)
    return row.raises_on_zero and by_tensor and not dtype.is_floating_point


def layouts_of(row: Row) -> list[str]:
    first = functional(row)
    found = ["0-dim", "transposed", "sliced", "channels_last"]
    if not row.zero_dim:  # an operand has one element
        found.append("empty")
    # PyTorch's own kernel of gelu_backward requires operands of one shape.
    if first.tensors > 1 and not first.in_place and row.aten != "gelu_backward":
        found.append("broadcast")
    return found


def other_overloads(row: Row) -> Iterator[Overload]:
    """In place, into out=, and with scalars instead of tensors."""
    first = functional(row)
    for overload in overloads(row):
        if overload.op is first.op or overload.tensors == 0:
            continue
        if overload.has_out and overload.tensors < first.tensors:
            continue
        if overload.name.startswith("aten::pow") and overload.tensors < 2:
            continue  # exponents that have a form of their own are tested apart
        yield overload


def all_cases(row: Row) -> Iterator[Case]:
    first = functional(row)
    dtypes = dtypes_of(row)
    yield from (Case(first, dtype, "dense") for dtype in dtypes)
    usual = torch.float32 if torch.float32 in dtypes else torch.int32
    if usual in dtypes:
        yield from (Case(first, usual, layout) for layout in layouts_of(row))
    if row.kind.result == "boolean" and torch.bool in dtypes:
        usual = torch.bool
    for overload in other_overloads(row):
        if not declines(row, overload, usual):
            yield Case(overload, usual, "dense")
        if row.raises_on_zero and overload.tensors == 1 and not overload.in_place:
            integers = (DTYPE_OF_LETTER[letter] for letter in INTS)
            yield from (
                Case(overload, each, "dense")
                for each in integers
                if not declines(row, overload, each)
            )


def some_cases(row: Row) -> Iterator[Case]:
    """float32, one half and one integer; one layout; nothing in place."""
    first = functional(row)
    dtypes = dtypes_of(row)
    half = torch.float16 if len(row.aten) % 2 else torch.bfloat16
    integer = torch.int64 if len(row.aten) % 2 else torch.uint8
    chosen = [d for d in dtypes if d in (torch.float32, half, integer)] or dtypes[:1]
    yield from (Case(first, dtype, "dense") for dtype in chosen)
    layouts = layouts_of(row)
    layout = "broadcast" if "broadcast" in layouts else "sliced"
    yield Case(first, chosen[0], layout)


def failures_of(row: Row, cases: Iterable[Case], place: Place) -> list[str]:
    """The cases that failed, with their errors."""
    found = []
    for case in cases:
        make = operands(row, case.layout)
        try:
            check(row, case.overload, case.dtype, make, place)
        except (AssertionError, RuntimeError, TypeError) as error:
            found.append(f"{case} on {place}: {error}")
    return found


@pytest.mark.one_in(3)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize(
    "row",
    [
        row if row in IN_FULL else pytest.param(row, marks=pytest.mark.slow)
        for row in POINTWISE
    ],
    ids=name_of,
)
def test_every_dtype_layout_and_overload(row: Row, xpu: torch.device) -> None:
    cases = list(all_cases(row))
    assert cases
    failures = [f for place in places() for f in failures_of(row, cases, place)]
    assert not failures, "\n\n".join(failures)


@pytest.mark.one_in(3)
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.beyond_cpu(row=IN_FULL)
@pytest.mark.parametrize("row", POINTWISE, ids=name_of)
def test_some_dtypes_and_a_layout(row: Row, xpu: torch.device) -> None:
    failures = failures_of(row, some_cases(row), places()[0])
    assert not failures, "\n\n".join(failures)


@pytest.mark.mappings("explicit", "AUTO")
@pytest.mark.parametrize("row", SAMPLE, ids=name_of)
def test_every_device_of_the_mapping(row: Row, xpu: torch.device) -> None:
    cases = list(some_cases(row))
    failures = [f for place in places() for f in failures_of(row, cases, place)]
    assert not failures, "\n\n".join(failures)
