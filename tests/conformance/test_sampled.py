"""A part of the conformance run: one dtype of every op, module and optimizer.

The whole run is a command: `python -m xpurt conformance --jobs 2`.
"""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from xpurt_tools.conformance import Settings, run_conformance

pytestmark = pytest.mark.takes_minutes

FLOORS = Path(__file__).with_name("kernel_share.txt")

CPU = Settings(jobs=2, sample=12, samples_per_pair=1)
# A part of the ops, since kernels are built for each.
CPU_SYCL = Settings(
    policy="sycl",
    ops=("nn.functional.[a-g]*", "nn.[AB]*", "_*", "[ad]*"),
    jobs=2,
    sample=24,
    samples_per_pair=1,
)
CPU_SYCL_HALF = replace(CPU_SYCL, ops=("nn.*", "_*", "[a-h]*"))
GPU = Settings("GPU", virtual_gpu="strict", jobs=2, sample=36, samples_per_pair=1)
# By cost small operands stay with PyTorch's kernels, which would be compared with
# themselves.
AUTO = replace(GPU, mapping="AUTO", policy="sycl")


@pytest.mark.parametrize(
    "settings",
    [
        CPU,
        # tests/kernels runs samples of every row.
        pytest.param(CPU_SYCL, marks=pytest.mark.slow),
        # Kernels have to be built for them: minutes each.
        pytest.param(
            CPU_SYCL_HALF, marks=pytest.mark.slow, id="CPU+sycl, half of the ops"
        ),
        pytest.param(GPU, marks=pytest.mark.slow),
        pytest.param(AUTO, marks=pytest.mark.slow),
    ],
    ids=lambda settings: settings.label,
)
def test_a_sample_of_every_op_is_right(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    code = run_conformance([settings], path)
    text = capsys.readouterr().out
    assert code == 0, text
    data = json.loads(path.read_text())
    # PyTorch has 831 entries, 12 of them not on the CPU.
    assert data["pairs"] > (780 if settings.ops == ("*",) else 100)
    if settings is not CPU_SYCL_HALF and settings.label in floors():
        floor = floors()[settings.label]
        assert data["kernel_share"] >= floor, (
            f"{data['kernel_share']:.1%} of the pairs took SYCL or oneDNN; "
            f"{floor:.1%} did before ({FLOORS.name})\n{text}"
        )


@cache
def floors() -> dict[str, Any]:
    lines = (line.split() for line in FLOORS.read_text().splitlines())
    return {words[0]: float(words[1]) for words in lines if words and words[0] != "#"}


def test_the_floors_are_of_runs_that_take_place() -> None:
    labels = {settings.label for settings in (CPU, CPU_SYCL, GPU, AUTO)}
    assert set(floors()) <= labels
    assert floors()
