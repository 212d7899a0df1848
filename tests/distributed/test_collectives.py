"""torch.distributed over gloo: right where the host reads the memory, else refused."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import xpurt

SCRIPT = Path(__file__).with_name("two_ranks.py")

# The results of rank 0 and rank 1.
EXPECTED: dict[str, tuple[object, object]] = {
    "all_reduce": ([3, 3, 3],) * 2,
    "all_reduce_async": ([6, 6, 6],) * 2,
    "all_gather": ([[1, 1, 1], [2, 2, 2]],) * 2,
    "all_gather_into_tensor": ([1, 1, 1, 2, 2, 2],) * 2,
    "broadcast": ([2, 2, 2],) * 2,
    "reduce_scatter": ([2], [4]),
    "all_to_all": ([0, 10], [1, 11]),
    "send_and_receive": ([1, 1, 1],) * 2,
    "functional": (["xpu:0", [3, 3, 3]],) * 2,
    "parallel_module": ([[1.5, 1.5, 1.5]],) * 2,
    "replica_elsewhere": ([[10] * 3, [30] * 3], [[20] * 3, [30] * 3]),
}
# These don't give the memory of an xpu tensor to the backend.
EVERYWHERE: dict[str, tuple[object, object]] = {
    "by_way_of_the_cpu": ([3, 3, 3],) * 2,
    "objects": (["xpu:0 [1.0, 1.0, 1.0]", "xpu:0 [2.0, 2.0, 2.0]"],) * 2,
    "barrier": ("passed",) * 2,
}


def run_two(mapping: str) -> tuple[dict[str, object], dict[str, object]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), port],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "XPURT_MAPPING": mapping, "OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    try:
        ended = [rank.communicate(timeout=300) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, (_, err) in zip(ranks, ended, strict=True):
        assert rank.returncode == 0, err
    first, second = (json.loads(out.splitlines()[-1]) for out, _ in ended)
    return first, second


@pytest.fixture(scope="module")
def has_gpu() -> None:
    if not any(device.kind == "gpu" for device in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")


@pytest.mark.parametrize("mapping", ["CPU", "AUTO"])
def test_where_the_host_reads_the_memory(has_gpu: None, mapping: str) -> None:
    expected = EXPECTED | EVERYWHERE
    if mapping == "AUTO":
        del expected["parallel_module"]
    for rank, found in enumerate(run_two(mapping)):
        assert {case: found[case] for case in expected} == {
            case: each[rank] for case, each in expected.items()
        }


def test_where_it_does_not(has_gpu: None) -> None:
    for rank, found in enumerate(run_two("GPU")):
        for case in EXPECTED:
            said = str(found[case])
            assert said.startswith("FallbackError: c10d::"), (case, said)
            assert "refused on xpu:0 (" in said
            assert 'mapping "CPU"' in said
            assert "tensor.cpu()" in said
        for case, each in EVERYWHERE.items():
            assert found[case] == each[rank], case
        assert found["what_is_left"] == [rank + 1.0] * 3
