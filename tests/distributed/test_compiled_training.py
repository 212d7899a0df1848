"""torch.compile around DDP, FSDP2 and DTensor, with two ranks.

The cases are in a script, which runs once per mapping: in the native form, and as
kernels of OpenCL C. Those that are slow have a run of their own.
"""

import functools
from pathlib import Path

import compiled
import pytest
from rank_processes import Found, run
from ranks import RANKS, cases

import xpurt

BY_DEFAULT = ["ddp", "fsdp2_of_compiled_layers"]
OTHERS = [case for case in cases(vars(compiled)) if case not in BY_DEFAULT]


@functools.cache
def found(mapping: str, by_default: bool) -> list[Found]:
    names = BY_DEFAULT if by_default else OTHERS
    return run(Path(compiled.__file__), mapping, *names)


@pytest.mark.rest
@pytest.mark.parametrize(
    "mapping", ["CPU", pytest.param("GPU", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "case",
    [*BY_DEFAULT, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)],
)
def test_on_two_ranks(case: str, mapping: str) -> None:
    if mapping != "CPU" and not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")
    assert [each[case] for each in found(mapping, case in BY_DEFAULT)] == ["ok"] * RANKS
