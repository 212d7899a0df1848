"""Models optimized for inference, on two ranks. The cases are in a script."""

import functools
from pathlib import Path

import optimized_inference
import pytest
from cpu_types import need_bf16
from rank_processes import Found, run
from ranks import RANKS, cases


@functools.cache
def found() -> list[Found]:
    return run(Path(optimized_inference.__file__), "CPU")


@pytest.mark.rest
@pytest.mark.parametrize("case", cases(vars(optimized_inference)))
def test_on_two_ranks(case: str) -> None:
    if case == "layers_in_bfloat16_on_the_cpu":
        need_bf16()
    assert [each[case] for each in found()] == ["ok"] * RANKS
