"""Training with split parameters on two ranks. The cases are in a script."""

import functools
from pathlib import Path

import optimized
import pytest
from rank_processes import Found, run
from ranks import RANKS, cases


@functools.cache
def found() -> list[Found]:
    return run(Path(optimized.__file__), "CPU")


@pytest.mark.parametrize("case", cases(vars(optimized)))
def test_on_two_ranks(case: str) -> None:
    assert [each[case] for each in found()] == ["ok"] * RANKS
