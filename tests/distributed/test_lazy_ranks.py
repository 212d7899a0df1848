"""torch.distributed on lazy tensors, with two ranks and with four. The cases are in scripts."""

import functools
from pathlib import Path
from types import ModuleType

import lazy_graphs
import lazy_tensors
import lazy_training
import pytest
from rank_processes import Found, run
from ranks import RANKS, cases

SCRIPTS = (lazy_tensors, lazy_graphs, lazy_training)
CASES = [(script, case) for script in SCRIPTS for case in cases(vars(script))]


@functools.cache
def found(script: ModuleType, ranks: int = RANKS) -> list[Found]:
    return run(Path(str(script.__file__)), "CPU", WORLD_SIZE=str(ranks))


@pytest.mark.parametrize(
    ("script", "case"), CASES, ids=lambda each: getattr(each, "__name__", each)
)
def test_lazy_tensors_on_two_ranks(script: ModuleType, case: str) -> None:
    assert [each[case] for each in found(script)] == ["ok"] * RANKS


@pytest.mark.parametrize("case", cases(vars(lazy_training)))
def test_training_on_four_ranks(case: str) -> None:
    assert [each[case] for each in found(lazy_training, 4)] == ["ok"] * 4
