"""Models optimized for inference, on two ranks. The cases are in a script."""

import functools
from pathlib import Path

import optimized_inference
import pytest
import torch
from ranks import RANKS, Found, cases, run

from xpurt.optimization.fused_layers import types_of_cpu


@functools.cache
def found() -> list[Found]:
    return run(Path(optimized_inference.__file__), "CPU")


@pytest.mark.parametrize("case", cases(vars(optimized_inference)))
def test_on_two_ranks(case: str) -> None:
    computed = torch.bfloat16 in types_of_cpu()
    if case == "layers_in_bfloat16_on_the_cpu" and not computed:
        pytest.skip("oneDNN computes no bfloat16 on this processor")
    assert [each[case] for each in found()] == ["ok"] * RANKS
