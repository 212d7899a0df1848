"""torch.distributed on prototypes, with two ranks: the cases of xpu."""

import functools
from pathlib import Path

import collectives
import pytest
import training
from rank_processes import Found, run
from ranks import PROTOTYPE, RANKS, cases

FOLDER = Path(__file__).parent
SCRIPTS = {"collectives.py": collectives, "training.py": training}
# Each kind of memory, and each kind of type: with a key alone, with hooks, PrivateUse1.
KINDS = [
    ("ipu", "host"),
    ("mydevice", "gpu"),
    ("hpu", "host"),
    ("mtia", "cpu"),
    ("maia", "xpu"),
]
BY_DEFAULT = {"collectives.py": KINDS[:2], "training.py": KINDS[2:3]}


@functools.cache
def found(script: str, name: str, memory: str) -> list[Found]:
    virtual_gpu = "strict" if memory == "gpu" else "off"
    variables = {PROTOTYPE: f"{name}:{memory}", "XPURT_VIRTUAL_GPU": virtual_gpu}
    return run(FOLDER / script, "CPU", XPURT_FALLBACK="silent", **variables)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("script", "name", "memory", "case"),
    [
        pytest.param(
            *(script, name, memory, case),
            marks=() if (name, memory) in BY_DEFAULT[script] else pytest.mark.slow,
        )
        for script, module in SCRIPTS.items()
        for name, memory in KINDS
        for case in cases(vars(module))
    ],
)
def test_on_two_ranks(script: str, name: str, memory: str, case: str) -> None:
    assert [each[case] for each in found(script, name, memory)] == ["ok"] * RANKS
