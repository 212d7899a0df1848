"""A second check of a result: the CPU in a wider type.

A device may choose where an op rounds, and in which order it adds. Two right results
can differ by more than a tolerance if terms cancel, or if a rounded coordinate selects
another pixel. The CPU's result in the pair's own type is then no better reference than
the one on xpu; its result in the next wider type is. A result is right if it is near to
that, or if its error is at most twice the error of the CPU's own result. This is the
bound that PyTorch sets for its compilers (`same` in torch/_dynamo/utils.py), for the
greatest error instead of the mean.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._pytree import tree_flatten, tree_map

from xpurt.testing import outcome
from xpurt_tools.conformance.tolerance import Tolerance

T = TypeVar("T")

WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}

MOST = 2.0  # times the CPU's error


def agrees_in_wider_type(
    inputs: T, body: Callable[[T], Any], expected: Any, actual: Any, bound: Tolerance
) -> bool:
    """Whether `actual` is as right as `expected`, the CPU's result of `body`. The
    reference is the CPU's result with `inputs` in the next wider type."""
    torch.manual_seed(0)
    wide_inputs = _widened(inputs)
    if wide_inputs is None:
        return False
    wide, error = outcome(body, wide_inputs)
    if error is not None:
        return False
    wide_leaves, wide_form = tree_flatten(wide)
    leaves, form = tree_flatten(expected)
    others, other_form = tree_flatten(actual)
    return form == wide_form == other_form and all(
        _is_right(other, leaf, judge, bound)
        for other, leaf, judge in zip(others, leaves, wide_leaves, strict=True)
    )


def _widened(inputs: T) -> T | None:
    """`inputs` in the next wider types; None if no tensor has a wider type."""
    wide: dict[int, torch.Tensor] = {}

    def widened(leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return WIDER.get(leaf, leaf)
        if not isinstance(leaf, torch.Tensor) or leaf.dtype not in WIDER:
            return leaf
        if id(leaf) not in wide:
            copy = leaf.detach().to(WIDER[leaf.dtype])
            wide[id(leaf)] = copy.requires_grad_(leaf.requires_grad)
        return wide[id(leaf)]

    found = tree_map(widened, inputs)
    return found if wide else None


def _is_right(actual: Any, expected: Any, wide: Any, bound: Tolerance) -> bool:
    """Whether one leaf is right."""
    if not isinstance(wide, torch.Tensor) or not isinstance(expected, torch.Tensor):
        return bound.admits(expected, actual)
    narrow = wide.detach().to(expected.dtype)
    if expected.requires_grad:
        narrow.requires_grad_()
    if bound.admits(narrow, actual) or bound.admits(expected, actual):
        return True
    if expected.dtype not in WIDER or expected.layout is not torch.strided:
        return False
    if not _alike(expected, actual):
        return False
    of_actual = _greatest_error(actual.detach().cpu(), wide.detach())
    of_cpu = _greatest_error(expected.detach(), wide.detach())
    return of_actual <= MOST * of_cpu < float("inf")


def _alike(expected: torch.Tensor, actual: Any) -> bool:
    return (
        isinstance(actual, torch.Tensor)
        and actual.layout is expected.layout
        and actual.dtype == expected.dtype
        and actual.shape == expected.shape
    )


def _greatest_error(found: torch.Tensor, wide: torch.Tensor) -> float:
    """The greatest error; infinite if one value is NaN or infinite, the other not."""
    found = found.to(wide.dtype)
    same = (found == wide) | (found.isnan() & wide.isnan())
    error = torch.where(same, 0, (found - wide).abs()).nan_to_num(nan=float("inf"))
    return error.max().item() if error.numel() else 0.0
