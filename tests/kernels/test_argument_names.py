"""Custom kernels call arguments by the names that this PyTorch has
for them. A version may rename one, and a kernel that is seldom built would fail late."""

import re

import pytest
import torch

from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.rows.table import ROWS

# Those of ops of xpurt's own have a schema of ours.
CUSTOM = [row for row in ROWS if isinstance(row, CustomKernel) and not row.schema]
RESULT = re.compile(r"out\d*")


def arguments_of(aten: str) -> set[str]:
    """Of all overloads, without the out= arguments."""
    return {
        argument.name
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{aten}")
        for argument in schema.arguments
    }


def unknown_names(row: CustomKernel, arguments: set[str]) -> set[str]:
    """The tensors that the row's kernels read or write, and that there are not."""
    there = arguments | {scratch.name for scratch in row.scratch}
    used = {name for step in row.steps for name in (*step.reads, *step.writes)}
    used |= {step.over for step in row.steps} | {*row.contiguous, *row.dense}
    used |= {name for name in (row.like, row.begins_as) if name}
    return {
        name
        for name in used
        # A tensor of a list has the name of the list and a number.
        if not ({name, re.sub(r"\d+$", "", name)} & there or RESULT.fullmatch(name))
    }


@pytest.mark.parametrize("row", CUSTOM, ids=lambda row: row.aten)
def test_the_kernels_name_arguments_as_this_pytorch_does(row: CustomKernel) -> None:
    assert unknown_names(row, arguments_of(row.aten)) == set()


def test_a_name_that_is_gone_is_seen() -> None:
    row = next(row for row in CUSTOM if row.aten == "_cdist_backward")
    arguments = arguments_of("_cdist_backward") - {"grad", "grad_output"}
    assert unknown_names(row, arguments | {"renamed"}) in ({"grad"}, {"grad_output"})
