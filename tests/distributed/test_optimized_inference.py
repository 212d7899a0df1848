"""Models optimized for inference, on two ranks. The cases are in a script."""

import functools
from pathlib import Path

import optimized_inference
import pytest
from ranks import RANKS, Found, cases, run


@functools.cache
def found() -> list[Found]:
    return run(Path(optimized_inference.__file__), "CPU")


@pytest.mark.parametrize("case", cases(vars(optimized_inference)))
def test_on_two_ranks(case: str) -> None:
    assert [each[case] for each in found()] == ["ok"] * RANKS
