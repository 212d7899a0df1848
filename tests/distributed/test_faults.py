"""A rank that fails or is late is an error of the others, in time, with its place."""

import json
from pathlib import Path

import faults
import pytest
from rank_processes import ended

import xpurt


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("kind", "mapping", "pattern"),
    [
        pytest.param("killed", "CPU", "all_reduce", marks=pytest.mark.slow),
        ("killed", "GPU", "all_reduce"),
        ("killed, then read", "GPU", "all_reduce"),
        ("late", "AUTO", "all_reduce"),
        ("absent", "CPU", "1/2 clients joined"),
    ],
)
def test_the_others_get_an_error(kind: str, mapping: str, pattern: str) -> None:
    if mapping != "CPU" and not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")
    first, _ = ended(Path(faults.__file__), mapping, kind)
    assert first.returncode == 0, first.stderr
    name, text, seconds = json.loads(first.stdout)
    assert pattern in text
    assert seconds < 2 * faults.TIMEOUT.seconds
    if kind != "absent":
        assert name == "DistBackendError"
        assert 'on rank 0 of 2 in group "0" failed' in text


def test_other_shapes_are_an_error_of_all_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    ranks = ended(Path(faults.__file__), "CPU", "other_shape")
    for number, rank in enumerate(ranks):
        assert rank.returncode == 0, rank.stderr
        _, text, seconds = json.loads(rank.stdout)
        assert f"Rank {number} is running collective" in text
        assert "ALLREDUCE" in text
        assert seconds < 2 * faults.TIMEOUT.seconds
