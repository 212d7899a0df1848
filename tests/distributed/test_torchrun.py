"""torchrun: the part of the machine for each rank, and a restart after a fault."""

import json
import os
import subprocess
import sys
from pathlib import Path

import elastic
import launched
import pytest
import torch

from xpurt.startup.launch import LocalRank, processors_of, usable_nodes


def torchrun(script: str, *arguments: str, **variables: str) -> None:
    """Runs a script on two ranks, in a session of their own: torchrun ends its group."""
    environment = {
        **os.environ,
        "GLOO_SOCKET_IFNAME": "lo",
        "XPURT_VIRTUAL_GPU": "off",
        # Else gloo finds the addresses of ranks that have ended, after a restart.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        **variables,
    }
    environment.pop("XPURT_MAPPING", None)
    options = ["--nproc-per-node", "2", "--standalone", "--local-addr", "127.0.0.1"]
    options += ["--max-restarts", "1"]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run"),
            *(*options, script, *arguments),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        start_new_session=True,
    )
    assert ended.returncode == 0, ended.stderr


def test_each_rank_gets_its_part(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < (os.cpu_count() or 1):
        pytest.skip("this process has a part already")
    torchrun(launched.__file__, RESULT=str(tmp_path / "rank"))
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


def test_a_rank_dies_and_the_training_goes_on(tmp_path: Path) -> None:
    torchrun(elastic.__file__, str(tmp_path))
    whole = elastic.made()
    losses = elastic.trained(whole, 0)
    for rank in range(2):
        found = json.loads((tmp_path / f"rank{rank}").read_text())
        first = found["first"]
        assert found["attempt"] == "1"
        assert 0 < first <= elastic.DIES
        assert found["losses"] == pytest.approx(losses[first:], rel=1e-5)
        torch.testing.assert_close(torch.tensor(found["weight"]), whole.weight.detach())
