"""A rank that fails or is late is an error of the others, in time, with its place."""

import json
from pathlib import Path

import faults
import pytest
from rank_processes import started

import xpurt


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
    with started(Path(faults.__file__), mapping, kind) as ranks:
        out, err = ranks[0].communicate(timeout=120)
    assert ranks[0].returncode == 0, err
    name, text, seconds = json.loads(out)
    assert pattern in text
    assert seconds < 2 * faults.TIMEOUT.seconds
    if kind != "absent":
        assert name == "DistBackendError"
        assert 'on rank 0 of 2 in group "0" failed' in text


def test_other_shapes_are_an_error_of_all_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    with started(Path(faults.__file__), "CPU", "other_shape") as ranks:
        ended = [rank.communicate(timeout=120) for rank in ranks]
    for number, (out, err) in enumerate(ended):
        assert ranks[number].returncode == 0, err
        _, text, seconds = json.loads(out)
        assert f"Rank {number} is running collective" in text
        assert "ALLREDUCE" in text
        assert seconds < 2 * faults.TIMEOUT.seconds
