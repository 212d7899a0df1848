"""torchrun: the part of the machine for each rank, and a restart after a fault."""

import json
import os
from pathlib import Path

import elastic
import launched
import pytest
import torch
from torchrun import torchrun

from xpurt.startup.launch import LocalRank, processors_of, usable_nodes


@pytest.mark.rest
def test_each_rank_gets_its_part(tmp_path: Path) -> None:
    if len(os.sched_getaffinity(0)) < (os.cpu_count() or 1):
        pytest.skip("this process has a part already")
    torchrun(launched.__file__, RESULT=str(tmp_path / "rank"), XPURT_VIRTUAL_GPU="off")
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


@pytest.mark.rest
def test_a_rank_dies_and_the_training_goes_on(tmp_path: Path) -> None:
    torchrun(
        elastic.__file__,
        str(tmp_path),
        restarts=1,
        XPURT_VIRTUAL_GPU="off",
        # Else gloo finds the addresses of ranks that have ended, after the restart.
        TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1",
    )
    whole = elastic.made()
    losses = elastic.trained(whole, 0)
    for rank in range(2):
        found = json.loads((tmp_path / f"rank{rank}").read_text())
        first = found["first"]
        assert found["attempt"] == "1"
        assert 0 < first <= elastic.DIES
        assert found["losses"] == pytest.approx(losses[first:], rel=1e-5)
        torch.testing.assert_close(torch.tensor(found["weight"]), whole.weight.detach())
