"""The peak of a rank's memory in training with FSDP2."""

import ctypes
import gc
import re
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from xpurt_tools.bench.models import GPT, Case, next_token, training_step
from xpurt_tools.bench.row import SEED, Call

STEPS = 2


def fsdp2_step(device: str) -> Call:
    """A step of AdamW on a GPT of 15 million parameters, which the ranks share."""
    torch.manual_seed(SEED)
    model = GPT(vocabulary=2000, length=128, width=512, heads=8, layers=4)
    case = Case(model, (torch.randint(2000, (4, 129)),), next_token)
    mesh = init_device_mesh(device, (dist.get_world_size(),))

    def sharded(model: nn.Module) -> nn.Module:
        from torch.distributed.fsdp import fully_shard

        assert isinstance(model, GPT)
        for layer in model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model

    return training_step(case, device, torch.optim.AdamW, sharded)


def peak_bytes(prepare: Callable[[], Call]) -> int:
    """How far the process's memory grows while it prepares a step and takes some.

    All memory counts, of every allocator and library. The same is done once before, so
    that kernels, threads and connections are there. Linux alone tells it.
    """
    _take_steps(prepare)
    _give_memory_back()
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    _take_steps(prepare)
    return _resident("VmHWM") - before


def _take_steps(prepare: Callable[[], Call]) -> None:
    step = prepare()
    for _ in range(STEPS):
        step()
    torch.xpu.synchronize()


def _give_memory_back() -> None:
    gc.collect()
    torch.xpu.empty_cache()
    ctypes.CDLL(None).malloc_trim(0)


def _resident(field: str) -> int:
    """A field of the process's state, in bytes."""
    found = re.search(rf"{field}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10
