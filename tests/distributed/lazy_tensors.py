"""The cases of a rank: collectives on lazy tensors, and training in parallel."""

import copy

import torch
import torch.distributed as dist
from ranks import RANKS, main
from torch import Tensor, nn

import xpurt.lazy

RANK_SUM = sum(range(1, RANKS + 1))


def _mine(*size: int) -> Tensor:
    """Twice the number of the rank, from 1, and not computed yet."""
    ones = torch.ones(size, device="lazy")
    return ones * (dist.get_rank() + 1) + ones * (dist.get_rank() + 1)


def _check(found: Tensor, want: Tensor) -> None:
    assert found.device.type == "lazy", found.device
    torch.testing.assert_close(found.cpu(), want)


def all_reduce() -> None:
    found = _mine(3)
    alias = found[1:]
    dist.all_reduce(found)
    _check(found + 1, torch.full((3,), 2.0 * RANK_SUM + 1))
    _check(alias, torch.full((2,), 2.0 * RANK_SUM))


def all_reduce_later() -> None:
    found = _mine(3)
    work = dist.all_reduce(found, async_op=True)
    assert work is not None
    work.wait()
    _check(found, torch.full((3,), 2.0 * RANK_SUM))


def broadcast() -> None:
    found = _mine(2, 2)
    dist.broadcast(found, src=1)
    _check(found, torch.full((2, 2), 4.0))


def all_gather() -> None:
    found = [torch.empty(2, device="lazy") for _ in range(RANKS)]
    dist.all_gather(found, _mine(2))
    for rank, each in enumerate(found):
        _check(each, torch.full((2,), 2.0 * (rank + 1)))
    whole = torch.empty(2 * RANKS, device="lazy")
    dist.all_gather_into_tensor(whole, _mine(2))
    _check(whole, torch.tensor([2.0, 2.0, 4.0, 4.0]))


def reduce_scatter() -> None:
    found = torch.empty(2, device="lazy")
    dist.reduce_scatter(found, [_mine(2) for _ in range(RANKS)])
    _check(found, torch.full((2,), 2.0 * RANK_SUM))
    dist.reduce_scatter_tensor(found, _mine(2 * RANKS))
    _check(found, torch.full((2,), 2.0 * RANK_SUM))


def training_by_averaged_gradients() -> None:
    """Each rank has half of a batch: the mean of the gradients is that of the batch."""
    torch.manual_seed(0)
    alone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    lazy = copy.deepcopy(alone).to("lazy")
    x = torch.randn(4 * RANKS, 6)
    mine = x.chunk(RANKS)[dist.get_rank()].to("lazy")
    both = [torch.optim.SGD(each.parameters(), 0.1) for each in (alone, lazy)]
    for _ in range(3):
        for net, data, steps in zip((alone, lazy), (x, mine), both, strict=True):
            steps.zero_grad()
            net(data).square().mean().backward()
            if net is lazy:
                for each in net.parameters():
                    dist.all_reduce(each.grad)
                    each.grad /= RANKS
            steps.step()
    for one, other in zip(lazy.parameters(), alone.parameters(), strict=True):
        _check(one.detach(), other.detach())
    assert not xpurt.lazy.fallbacks(), xpurt.lazy.fallbacks()


def data_parallel() -> None:
    torch.manual_seed(0)
    alone = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    lazy = nn.parallel.DistributedDataParallel(copy.deepcopy(alone).to("lazy"))
    x = torch.randn(4 * RANKS, 6)
    alone(x).square().mean().backward()
    mine = x.chunk(RANKS)[dist.get_rank()].to("lazy")
    lazy(mine).square().mean().backward()
    for one, other in zip(lazy.parameters(), alone.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        _check(one.grad, other.grad)


if __name__ == "__main__":
    xpurt.lazy.init(compile="never")
    main(globals())
