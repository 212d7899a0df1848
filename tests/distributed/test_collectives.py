"""torch.distributed on xpu, with two ranks: each collective, and training in parallel.

The cases are in scripts, which run once per mapping.
"""

import functools
from pathlib import Path

import attention
import collectives
import ordering
import pytest
import training
from rank_processes import Found, run
from ranks import RANKS, cases

import xpurt

FOLDER = Path(__file__).parent
SCRIPTS = {
    "collectives.py": collectives,
    "ordering.py": ordering,
    "training.py": training,
    "attention.py": attention,
}

BY_DEFAULT = {
    "collectives.py": ("CPU",),
    "ordering.py": ("AUTO",),
    "training.py": ("GPU",),
    "attention.py": ("GPU",),
}


@functools.cache
def found(script: str, mapping: str) -> list[Found]:
    return run(FOLDER / script, mapping)


def marks(script: str, mapping: str) -> list[pytest.MarkDecorator]:
    if mapping not in BY_DEFAULT[script]:
        return [pytest.mark.slow]
    # Attention over ranks takes 9 s: make test-rest runs it.
    return [pytest.mark.rest] if script == "attention.py" else []


# A script runs once per mapping, which takes 10 s.
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("script", "case", "mapping"),
    [
        pytest.param(
            *(script, case, mapping),
            marks=marks(script, mapping),
        )
        for script, module in SCRIPTS.items()
        for case in cases(vars(module))
        for mapping in ("CPU", "GPU", "AUTO")
    ],
)
def test_on_two_ranks(script: str, case: str, mapping: str) -> None:
    if mapping != "CPU" and not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")
    assert [each[case] for each in found(script, mapping)] == ["ok"] * RANKS
