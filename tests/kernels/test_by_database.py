"""Custom kernels and of other ops, on the samples of PyTorch's operator database."""

from functools import cache
from typing import Any

import pytest
import torch

import xpurt
from kernels.database_names import NAMES, TESTED_APART
from kernels.kernel_forced import ON_THE_QUEUE, tiers_of
from kernels.kernel_samples import has_elements
from xpurt import _C
from xpurt.conformance.databases import of_pytorch
from xpurt.kernels import ROWS
from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.testing.oracle import agree

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
@pytest.mark.beyond_cpu(aten=sorted(rows - TESTED_APART)[::3])
@pytest.mark.parametrize("aten", sorted(rows - TESTED_APART))
def test_samples(aten: str, dtype: str, xpu: torch.device) -> None:
    """The results are the CPU's, forward and backward, and a row computes them."""
    info = database()[NAMES[aten]]
    floating = DTYPES[dtype].is_floating_point
    if DTYPES[dtype] not in info.supported_dtypes("cpu"):
        pytest.skip(f"{info.name} takes no {DTYPES[dtype]} on the CPU")
    if aten.endswith("_backward") and not floating:
        pytest.skip("integers have no gradient")
    with_grad = floating and info.supports_autograd
    near = {"float": 1e-4, "narrow": 2e-2, "whole": 1e-6}[dtype]
    made = info.sample_inputs("cpu", DTYPES[dtype], requires_grad=with_grad)
    samples = list(filter(has_elements, made))
    step = max(len(samples) // SAMPLES[dtype], 1)
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"):
        for sample in samples[step // 2 :: step][: SAMPLES[dtype]]:
            arguments = (sample.input, *sample.args)
            agree(info.op, *arguments, rtol=near, atol=near, **sample.kwargs)
        torch.xpu.synchronize()
    op = aten if "::" in aten else f"aten::{aten}"
    # PyTorch computes some functional ops by the in-place one.
    assert (tiers_of(op) | tiers_of(f"{op}_")) & ON_THE_QUEUE
