"""torchrun: each rank gets its part of the machine, and its index as an ordinal."""

import json
import os
import subprocess
import sys
from pathlib import Path

import launched
import pytest

from xpurt.startup.launch import LocalRank, processors_of, usable_nodes


def test_each_rank_gets_its_part(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < (os.cpu_count() or 1):
        pytest.skip("this process has a part already")
    environment = {
        **os.environ,
        "GLOO_SOCKET_IFNAME": "lo",
        "RESULT": str(tmp_path / "rank"),
        "XPURT_VIRTUAL_GPU": "off",
    }
    environment.pop("XPURT_MAPPING", None)
    options = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    run = [sys.executable, "-m", "torch.distributed.run", *options, launched.__file__]
    ended = subprocess.run(
        run, env=environment, capture_output=True, text=True, timeout=200
    )
    assert ended.returncode == 0, ended.stderr
    for rank in range(2):
        found = json.loads((tmp_path / f"rank{rank}").read_text())
        part = processors_of(LocalRank(rank, 2), usable_nodes())
        assert found == {
            "rank": rank,
            "first": 0,
            "devices": 2,
            "device": f"xpu:{rank}",
            "sum": [3.0, 3.0],
            "processors": part,
            "threads": len(part),
            "units": len(part),
            "backend": "cpu:gloo,xpu:xccl",
        }
