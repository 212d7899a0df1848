"""A rank that fails or is late is an error of the others, in time, with its place."""

import json
from pathlib import Path

import faults
import pytest
from ranks import start

import xpurt


@pytest.mark.parametrize(
    ("kind", "mapping", "pattern"),
    [
        ("killed", "CPU", "all_reduce"),
        ("killed", "GPU", "all_reduce"),
        ("killed, then read", "GPU", "all_reduce"),
        ("late", "AUTO", "all_reduce"),
        ("absent", "CPU", "1/2 clients joined"),
    ],
)
def test_the_others_get_an_error(kind: str, mapping: str, pattern: str) -> None:
    if mapping != "CPU" and not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")
    ranks = start(Path(faults.__file__), mapping, kind)
    try:
        out, err = ranks[0].communicate(timeout=120)
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert ranks[0].returncode == 0, err
    name, text, seconds = json.loads(out)
    assert pattern in text
    assert seconds < 2 * faults.TIMEOUT.seconds
    if kind != "absent":
        assert name == "DistBackendError"
        assert 'on rank 0 of 2 in group "0" failed' in text
