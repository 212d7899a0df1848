"""torch.compile around DDP, FSDP2 and DTensor, with two ranks.

The cases are in a script, which runs once per mapping: in the native form, and as
kernels of OpenCL C.
"""

import functools
from pathlib import Path

import compiled
import pytest
from ranks import RANKS, Found, cases, run

import xpurt


@functools.cache
def found(mapping: str) -> list[Found]:
    return run(Path(compiled.__file__), mapping)


@pytest.mark.parametrize(
    "mapping", ["CPU", pytest.param("GPU", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("case", cases(vars(compiled)))
def test_on_two_ranks(case: str, mapping: str) -> None:
    if mapping != "CPU" and not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")
    assert [each[case] for each in found(mapping)] == ["ok"] * RANKS
