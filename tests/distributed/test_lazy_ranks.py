"""torch.distributed on lazy tensors, with two ranks. The cases are in a script."""

import functools
from pathlib import Path

import lazy_tensors
import pytest
from rank_processes import Found, run
from ranks import RANKS, cases

SCRIPT = Path(__file__).parent / "lazy_tensors.py"


@functools.cache
def found() -> list[Found]:
    return run(SCRIPT, "CPU")


@pytest.mark.parametrize("case", cases(vars(lazy_tensors)))
def test_lazy_tensors_on_two_ranks(case: str) -> None:
    assert [each[case] for each in found()] == ["ok"] * RANKS
