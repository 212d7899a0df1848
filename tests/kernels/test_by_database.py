"""Custom kernels and of other ops, on the samples of PyTorch's operator database."""

from functools import cache
from typing import Any

import pytest
import torch

import xpurt
from kernels.database_names import NAMES, TESTED_APART
from kernels.kernel_samples import has_elements
from xpurt.kernels import ROWS
from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt_tools.conformance.check_op import OpCheck
from xpurt_tools.conformance.databases import of_pytorch
from xpurt_tools.conformance.record import Record
from xpurt_tools.conformance.tolerance import tolerance

SAMPLES = {"float": 4, "narrow": 1, "whole": 1}
DTYPES = {"float": torch.float32, "narrow": torch.bfloat16, "whole": torch.int32}
SELDOM = ("narrow", "whole")

rows = {row.aten for row in ROWS if isinstance(row, CustomKernel | Decomposed)}


@cache
def database() -> dict[str, Any]:
    return {entry.name: entry.info for entry in of_pytorch()}


def test_every_row_is_tested() -> None:
    assert rows == set(NAMES) | TESTED_APART


@pytest.mark.parametrize(
    "dtype",
    # The conformance run has samples of all types.
    ["float", *(pytest.param(each, marks=pytest.mark.slow) for each in SELDOM)],
)
@pytest.mark.one_in(4)
@pytest.mark.beyond_cpu(aten=sorted(rows - TESTED_APART)[::3])
@pytest.mark.parametrize("aten", sorted(rows - TESTED_APART))
def test_samples(aten: str, dtype: str, xpu: torch.device) -> None:
    """The results are the CPU's, forward and backward, or as near to those in float64,
    and a row computes them."""
    info, exact = database()[NAMES[aten]], DTYPES[dtype]
    if exact not in info.supported_dtypes("cpu"):
        pytest.skip(f"{info.name} takes no {exact} on the CPU")
    if aten.endswith("_backward") and not exact.is_floating_point:
        pytest.skip("integers have no gradient")
    with_grad = exact.is_floating_point and info.supports_autograd
    made = info.sample_inputs("cpu", exact, requires_grad=with_grad)
    samples = list(filter(has_elements, made))
    step = max(len(samples) // SAMPLES[dtype], 1)
    record = Record(info.name, dtype, "op", tell=lambda _: None)
    check = OpCheck(info, record, tolerance(info, exact))
    with xpurt.kernel_policy("sycl"):
        for index, sample in enumerate(samples[step // 2 :: step][: SAMPLES[dtype]]):
            check.call(index, sample)
    assert record.result().failures == []
    # PyTorch computes some functional ops by the in-place one.
    assert {aten, f"{aten}_"} & record.tiers.on_kernels
