"""Training for torchrun that survives the death of a rank: it goes on at a checkpoint.

In the first attempt rank 1 kills itself before step DIES. The argument is a folder: for
the checkpoint, and for what each rank found.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 6
DIES = 4


def dies() -> bool:
    """Whether this rank dies in this attempt."""
    return dist.get_rank() == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"


def trained(model: nn.Module, first: int, saved: Path | None = None) -> list[float]:
    """The losses of the steps from `first`. Each step is saved, if there is a file."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    device = next(model.parameters()).device
    losses = []
    for step in range(first, STEPS):
        if saved is not None and step == DIES and dies():
            os.kill(os.getpid(), signal.SIGKILL)
        data = torch.Generator().manual_seed(step)
        x = torch.randn(4, 3, generator=data).to(device)
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if saved is not None and dist.get_rank() == 0:
            state = {"step": step + 1, "model": model.state_dict()}
            torch.save(state, saved.with_suffix(".new"))
            saved.with_suffix(".new").rename(saved)
    return losses


def made() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def main(folder: Path) -> None:
    dist.init_process_group()
    model = DistributedDataParallel(made().to("xpu"))
    saved, first = folder / "checkpoint", 0
    if saved.exists():
        state = torch.load(saved, map_location="xpu")
        model.load_state_dict(state["model"])
        first = state["step"]
    losses = trained(model, first, saved)
    found = {
        "attempt": os.environ["TORCHELASTIC_RESTART_COUNT"],
        "first": first,
        "losses": losses,
        "weight": model.module.weight.tolist(),
    }
    (folder / f"rank{dist.get_rank()}").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
