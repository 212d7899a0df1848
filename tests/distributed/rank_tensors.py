"""The tensors that each rank gives to a collective, and the check of a result."""

import torch
import torch.distributed as dist
from ranks import RANKS
from ranks import XPU as XPU_0

XPU = torch.device(XPU_0.type)


def of_rank(rank: int, dtype: torch.dtype = torch.float32, *shape: int) -> torch.Tensor:
    """The CPU tensor that `rank` gives to a collective."""
    made = torch.arange(1, 1 + torch.Size(shape or (6,)).numel()) * (rank + 1) % 11
    wide = torch.complex64 if dtype.is_complex else torch.float32
    made = made.to(wide)
    if dtype.is_complex:
        made = made * (1 + 2j)
    return made.to(dtype).view(shape or (6,))


def mine(dtype: torch.dtype = torch.float32, *shape: int) -> torch.Tensor:
    return of_rank(dist.get_rank(), dtype, *shape).to(XPU)


def all_ranks(dtype: torch.dtype = torch.float32, *shape: int) -> list[torch.Tensor]:
    return [of_rank(rank, dtype, *shape) for rank in range(RANKS)]


def check(found: torch.Tensor, expected: torch.Tensor) -> None:
    assert found.device.type == XPU.type, found.device
    assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
    ours, theirs = found.cpu(), expected
    if ours.dtype.itemsize == 1 and ours.is_floating_point():
        ours, theirs = ours.view(torch.uint8), theirs.view(torch.uint8)
    assert torch.equal(ours, theirs), (found, expected)
