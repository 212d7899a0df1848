"""The cases of a rank: collectives on lazy tensors."""

import torch
import torch._lazy.metrics
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from ranks import RANKS, main
from torch import Tensor

import xpurt.lazy

RANK_SUM = sum(range(1, RANKS + 1))


def _mine(*size: int) -> Tensor:
    """Twice the number of the rank, from 1, and not computed yet."""
    ones = torch.ones(size, device="lazy")
    return ones * (dist.get_rank() + 1) + ones * (dist.get_rank() + 1)


def _now() -> int:
    return torch._lazy.metrics.counter_value("xpurt::collectives_now") or 0


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


def all_to_all() -> None:
    mine, rank = (
        torch.arange(RANKS, device="lazy") + 10 * dist.get_rank(),
        dist.get_rank(),
    )
    want = torch.tensor([10 * each + rank for each in range(RANKS)])
    found = torch.empty_like(mine)
    dist.all_to_all_single(found, mine)
    _check(found, want)
    parts = list(torch.empty_like(mine).split(1))
    dist.all_to_all(parts, list(mine.split(1)))
    _check(torch.cat(parts), want)


def those_without_a_node() -> None:
    """They run when they are called, after those that were traced."""
    now, found, part = _now(), _mine(2), torch.empty(1, device="lazy")
    dist.all_reduce(found)
    dist.reduce(found, dst=0)
    if dist.get_rank() == 0:
        _check(found, torch.full((2,), 2.0 * RANK_SUM * RANKS))
    dist.scatter(part, list(_mine(RANKS).split(1)) if dist.get_rank() == 0 else None)
    _check(part, torch.full((1,), 2.0))
    assert _now() == now + 2


def functional_ones() -> None:
    group = dist.group.WORLD
    whole = torch.full((2 * RANKS,), 2.0 * RANK_SUM)
    _check(functional.all_reduce(_mine(2 * RANKS), "sum", group) + 0, whole)
    _check(functional.broadcast(_mine(2), 0, group) + 0, torch.full((2,), 2.0))
    found = functional.all_gather_tensor(_mine(1), 0, group) + 0
    _check(found, torch.arange(2.0, 2 * RANKS + 1, 2))
    found = functional.reduce_scatter_tensor(_mine(2 * RANKS), "sum", 0, group) + 0
    _check(found, whole[:2])
    found = functional.all_to_all_single(_mine(RANKS), [1] * RANKS, [1] * RANKS, group)
    _check(found + 0, torch.arange(2.0, 2 * RANKS + 1, 2))
    for each in functional.all_reduce_coalesced([_mine(2), _mine(3)], "sum", group):
        _check(each + 0, whole[: len(each)])
    sizes = (_mine(1), _mine(2))
    for each in functional.all_gather_into_tensor_coalesced(list(sizes), group):
        assert (each + 0).sum() == 2 * RANK_SUM * len(each) / RANKS


def functional_ones_that_write() -> None:
    ops, name = torch.ops._c10d_functional, dist.group.WORLD.group_name
    found = _mine(4)
    half = found[2:]
    ops.wait_tensor(ops.all_reduce_(found, "sum", name))
    _check(half, torch.full((2,), 2.0 * RANK_SUM))
    ops.broadcast_(half, 0, name)
    both = [_mine(1), _mine(2)]
    ops.all_reduce_coalesced_(both, "max", name)
    _check(torch.cat(both), torch.full((3,), 2.0 * RANKS))
    whole = torch.empty(RANKS, device="lazy")
    ops.all_gather_into_tensor_out(_mine(1), RANKS, name, out=whole)
    _check(whole, torch.arange(2.0, 2 * RANKS + 1, 2))


def gradients_of_functional_ones() -> None:
    x = torch.full((2,), dist.get_rank() + 1.0, device="lazy", requires_grad=True)
    gathered = functional.all_gather_tensor_autograd(x * 2, 0, dist.group.WORLD)
    weights = torch.arange(2.0 * RANKS, device="lazy")
    (gathered * weights).sum().backward()
    rank = dist.get_rank()
    _check(x.grad, 2.0 * RANKS * torch.tensor([2.0 * rank, 2.0 * rank + 1]))


if __name__ == "__main__":
    xpurt.lazy.init(compile="never")
    main(globals())
