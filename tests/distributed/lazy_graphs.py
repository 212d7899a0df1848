"""The cases of a rank: collectives in graphs of lazy tensors."""

import torch
import torch._lazy.metrics
import torch.distributed as dist
from ranks import RANKS, main
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import xpurt.lazy


def _count(name: str) -> int:
    return torch._lazy.metrics.counter_value(f"xpurt::{name}") or 0


def _graphs() -> int:
    return _count("run_op_by_op") + _count("run_compiled")


def _of_rank(size: int = 3) -> Tensor:
    return torch.full((size,), dist.get_rank() + 1.0, device="lazy")


MEAN = (RANKS + 1) / 2


def one_graph() -> None:
    """With what comes before and after."""
    x = _of_rank()
    xpurt.lazy.step()
    before, traced = _graphs(), _count("collectives_traced")
    y = x * 2
    dist.all_reduce(y)
    found = y / RANKS + 1
    assert "xpurt_lazy::all_reduce" in xpurt.lazy.text(found)
    assert _graphs() == before
    torch.testing.assert_close(found.cpu(), torch.full((3,), 2 * MEAN + 1))
    assert (_graphs(), _count("collectives_traced")) == (before + 1, traced + 1)


def results_that_nobody_reads() -> None:
    """The collective runs all the same, and once: ranks that read it meet it."""
    x = _of_rank()
    work = dist.all_reduce(x, async_op=True)
    if dist.get_rank() == 0:
        work.wait()
        torch.testing.assert_close(x.cpu(), torch.full((3,), MEAN * RANKS))
    del x, work
    after = _of_rank(2)
    dist.all_reduce(after)
    torch.testing.assert_close(after.cpu(), torch.full((2,), MEAN * RANKS))


def two_readers_of_one_result() -> None:
    """The second one reads another graph's result."""
    x = _of_rank()
    dist.all_reduce(x)
    first, second = x + 1, x + 2
    torch.testing.assert_close(first.cpu(), torch.full((3,), MEAN * RANKS + 1))
    graphs = _graphs()
    torch.testing.assert_close(second.cpu(), torch.full((3,), MEAN * RANKS + 2))
    assert _graphs() == graphs


def the_order_of_calls() -> None:
    """Each rank reads another result first; the graphs have the order of the program."""
    all_of_them = [_of_rank(size) for size in (1, 2, 3, 4)]
    for each in all_of_them:
        dist.all_reduce(each)
    for step in range(4):
        each = all_of_them[(dist.get_rank() + step) % 4]
        torch.testing.assert_close(each.cpu(), torch.full((len(each),), MEAN * RANKS))


def beside_other_devices() -> None:
    """A collective of tensors on the host comes after those that were traced."""
    x, host = _of_rank(), torch.ones(2)
    dist.all_reduce(x)
    if dist.get_rank() == 0:
        x.cpu()
    dist.all_reduce(host)
    torch.testing.assert_close(host, torch.full((2,), float(RANKS)))
    dist.all_reduce(x)
    graphs = _graphs()
    dist.barrier()
    assert _graphs() == graphs + 1


def a_compiled_rank_beside_one_op_by_op() -> None:
    """They understand each other: the device's group exchanges the data of both."""
    xpurt.lazy.init(compile="always" if dist.get_rank() == 0 else "never")
    torch.use_deterministic_algorithms(True)  # no time chooses the form
    try:
        compiled = _count("run_compiled")
        x = _of_rank(8)
        y = x.exp() - x.sin()
        want = sum(
            torch.full((8,), 1.0 + rank).exp() - torch.full((8,), 1.0 + rank).sin()
            for rank in range(RANKS)
        )
        for _ in range(2):
            part, whole = torch.empty(8 // RANKS, device="lazy"), torch.empty_like(y)
            dist.reduce_scatter_tensor(part, y)
            dist.all_gather_into_tensor(whole, part * 2)
            unread = y + 1
            dist.all_reduce(unread)
            del unread
            torch.testing.assert_close((whole / 2).cpu(), want)
        expected = 2 if dist.get_rank() == 0 else 0
        assert _count("run_compiled") - compiled == expected
    finally:
        torch.use_deterministic_algorithms(False)
        xpurt.lazy.init(compile="never")


def xpu_tensors_in_the_mode() -> None:
    x, traced = (
        torch.full((3,), dist.get_rank() + 1.0, device="xpu"),
        _count("collectives_traced"),
    )
    alias = x[1:]
    with xpurt.lazy.mode():
        dist.all_reduce(x)
        y = x / RANKS
    assert _count("collectives_traced") == traced + 1
    torch.testing.assert_close(alias.cpu(), torch.full((2,), MEAN * RANKS))
    torch.testing.assert_close(y.cpu(), torch.full((3,), MEAN))


def distributed_tensors() -> None:
    """A DTensor calls ops on its lazy part below functionalization."""
    mesh = init_device_mesh("lazy", (RANKS,))
    x = DTensor.from_local(_of_rank(2), mesh, [Shard(0)])
    x.mul_(2)
    x.add_(torch.ones_like(x))
    want = torch.arange(RANKS).repeat_interleave(2) * 2.0 + 3
    torch.testing.assert_close(x.full_tensor().cpu(), want)
    torch.testing.assert_close((x @ x).full_tensor().cpu(), want @ want)
    norm = torch.linalg.vector_norm(x).full_tensor()
    torch.testing.assert_close(norm.cpu(), torch.linalg.vector_norm(want))


def the_end_of_a_group() -> None:
    """It runs what was traced before it ends: rank 0 waits for the others."""
    group = dist.new_group()
    x = _of_rank()
    dist.all_reduce(x, group=group)
    if dist.get_rank() == 0:
        x.cpu()
    dist.destroy_process_group(group)
    torch.testing.assert_close(x.cpu(), torch.full((3,), MEAN * RANKS))


if __name__ == "__main__":
    xpurt.lazy.init(compile="never")
    main(globals())
