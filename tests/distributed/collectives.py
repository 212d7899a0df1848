"""The cases of a rank: every collective of torch.distributed, against CPU tensors."""

import warnings
from typing import Any

import torch
import torch.distributed as dist
from rank_tensors import XPU, all_ranks, check, mine, of_rank
from ranks import BACKEND, RANKS, host_copies, main

warnings.simplefilter("ignore")

SUMMED = (
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
    torch.complex64,
)
COPIED = (
    *SUMMED,
    torch.bool,
    torch.int16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex128,
)


def default_group() -> None:
    c10d = dist.distributed_c10d
    assert dist.is_xccl_available()
    assert f"{XPU.type}:{BACKEND}" in dist.get_backend_config().split(",")
    assert "cpu:gloo" in dist.get_backend_config().split(",")
    backend = dist.group.WORLD._get_backend(XPU)  # type: ignore[union-attr]
    assert backend.name() == BACKEND
    backend = getattr(backend, "behind", backend)  # of a prototype
    assert isinstance(backend, c10d.ProcessGroupXCCL)  # type: ignore[attr-defined]
    assert isinstance(backend.inner, dist.ProcessGroupGloo)


def sums_of_each_type() -> None:
    for dtype in SUMMED:
        host = of_rank(dist.get_rank(), dtype)
        dist.all_reduce(host)
        given = mine(dtype)
        dist.all_reduce(given)
        check(given, host)


def reduction_operations() -> None:
    for name in ("SUM", "PRODUCT", "MIN", "MAX"):
        given, host = mine(), of_rank(dist.get_rank())
        operation = getattr(dist.ReduceOp, name)
        dist.all_reduce(given, operation)
        dist.all_reduce(host, operation)
        check(given, host)
    for name in ("BAND", "BOR", "BXOR"):
        given, host = mine(torch.int64), of_rank(dist.get_rank(), torch.int64)
        operation = getattr(dist.ReduceOp, name)
        dist.all_reduce(given, operation)
        dist.all_reduce(host, operation)
        check(given, host)


def means() -> None:
    whole = torch.stack(all_ranks())
    given = mine()
    dist.all_reduce(given, dist.ReduceOp.AVG)
    check(given, whole.mean(0))
    whole = torch.stack(all_ranks(torch.int32))
    given = mine(torch.int32)
    dist.all_reduce(given, dist.ReduceOp.AVG)
    check(given, whole.sum(0).div(RANKS, rounding_mode="trunc").int())
    part = torch.zeros(3, device=XPU)
    dist.reduce_scatter_tensor(part, mine(), dist.ReduceOp.AVG)
    check(part, torch.stack(all_ranks()).mean(0).chunk(RANKS)[dist.get_rank()])


def scaled_sums() -> None:
    half = dist._make_nccl_premul_sum(0.5)  # type: ignore[attr-defined]
    given = mine()
    dist.all_reduce(given, half)
    check(given, sum(all_ranks()) * 0.5)
    given, part = mine(), torch.zeros(3, device=XPU)
    dist.reduce_scatter_tensor(part, given, half)
    check(part, (sum(all_ranks()) * 0.5).chunk(RANKS)[dist.get_rank()])
    check(given, of_rank(dist.get_rank()))


def copies_of_each_type() -> None:
    for dtype in COPIED:
        given = mine(dtype)
        dist.broadcast(given, 1)
        check(given, of_rank(1, dtype))
        parts = [torch.empty_like(given) for _ in range(RANKS)]
        dist.all_gather(parts, mine(dtype))
        for part, expected in zip(parts, all_ranks(dtype), strict=True):
            check(part, expected)
        found = torch.empty_like(given)
        dist.all_to_all_single(found, mine(dtype))
        halves = [each.chunk(RANKS)[dist.get_rank()] for each in all_ranks(dtype)]
        if dtype.itemsize == 1 and dtype.is_floating_point:
            halves = [half.view(torch.uint8) for half in halves]
        check(found, torch.cat(halves).view(dtype))


def reduce_to_a_rank() -> None:
    given = mine()
    dist.reduce(given, 1)
    if dist.get_rank() == 1:
        check(given, sum(all_ranks()))


def gathers() -> None:
    parts = [torch.zeros(6, device=XPU) for _ in range(RANKS)]
    dist.gather(mine(), parts if dist.get_rank() == 0 else None)
    if dist.get_rank() == 0:
        for part, expected in zip(parts, all_ranks(), strict=True):
            check(part, expected)
    for shape in ((RANKS * 6,), (RANKS, 6), (RANKS * 2, 3)):
        whole = torch.zeros(shape, device=XPU)
        dist.all_gather_into_tensor(whole, mine())
        check(whole, torch.cat(all_ranks()).view(shape))


def gather_in_place() -> None:
    whole = torch.zeros(RANKS * 6, device=XPU)
    part = whole[dist.get_rank() * 6 :][:6]
    part.copy_(mine())
    dist.all_gather_into_tensor(whole, part)
    check(whole, torch.cat(all_ranks()))


def scatters() -> None:
    found = torch.zeros(6, device=XPU)
    dist.scatter(
        found, [each.to(XPU) for each in all_ranks()] if dist.get_rank() == 0 else None
    )
    check(found, of_rank(dist.get_rank()))
    part = torch.zeros(3, device=XPU)
    dist.reduce_scatter(part, list(mine().chunk(RANKS)))
    check(part, sum(all_ranks()).chunk(RANKS)[dist.get_rank()])
    dist.reduce_scatter_tensor(part, mine())
    check(part, sum(all_ranks()).chunk(RANKS)[dist.get_rank()])
    uneven = [torch.full((rank + 1,), 2.0, device=XPU) for rank in range(RANKS)]
    part = torch.zeros(dist.get_rank() + 1, device=XPU)
    dist.reduce_scatter(part, uneven)
    check(part, torch.full((dist.get_rank() + 1,), 2.0 * RANKS))


def all_to_alls() -> None:
    found = [torch.zeros(dist.get_rank() + 1, device=XPU) for _ in range(RANKS)]
    given = [
        torch.full((r + 1,), dist.get_rank() * 10.0, device=XPU) for r in range(RANKS)
    ]
    dist.all_to_all(found, given)
    for rank, each in enumerate(found):
        check(each, torch.full((dist.get_rank() + 1,), rank * 10.0))
    # Rank r gives r + 1 rows to each rank.
    rows = [rank + 1 for rank in range(RANKS)]
    given = torch.full(
        (RANKS * (dist.get_rank() + 1), 2),
        dist.get_rank(),
        dtype=torch.int16,
        device=XPU,
    )
    whole = torch.zeros(sum(rows), 2, dtype=torch.int16, device=XPU)
    dist.all_to_all_single(whole, given, rows, [dist.get_rank() + 1] * RANKS)
    expected = torch.cat([torch.full((n, 2), n - 1) for n in rows])
    check(whole, expected.short())


def layouts() -> None:
    summed = sum(all_ranks(torch.float32, 3, 4))
    transposed = mine(torch.float32, 3, 4).t()
    dist.all_reduce(transposed)
    check(transposed, summed.t())
    columns = torch.zeros(3, 8, device=XPU)
    columns[:, ::2] = mine(torch.float32, 3, 4)
    dist.all_reduce(columns[:, ::2])
    assert not columns[:, 1::2].any()
    check(columns[:, ::2], summed)
    image = mine(torch.float32, 1, 3, 2, 2).to(memory_format=torch.channels_last)
    dist.broadcast(image, 0)
    check(image, of_rank(0, torch.float32, 1, 3, 2, 2))
    scalar = torch.tensor(dist.get_rank() + 1.0, device=XPU)
    dist.all_reduce(scalar)
    assert scalar.item() == sum(range(1, RANKS + 1))
    dist.all_reduce(torch.zeros(0, device=XPU))


@host_copies()
def sparse() -> None:
    index = torch.tensor([[dist.get_rank(), 3]], device=XPU)
    given = torch.sparse_coo_tensor(index, torch.ones(2, device=XPU), (5,))
    dist.all_reduce(given)
    check(given.to_dense(), torch.tensor([1.0, 1.0, 0.0, 2.0, 0.0]))


def coalesced() -> None:
    with dist._coalescing_manager(device=XPU, async_ops=True) as works:
        summed = [mine(), mine(torch.float32, 2, 2)]
        for each in summed:
            dist.all_reduce(each)
    works.wait()
    check(summed[0], sum(all_ranks()))
    check(summed[1], sum(all_ranks(torch.float32, 2, 2)))
    with dist._coalescing_manager(async_ops=True) as works:
        wholes = [torch.zeros(RANKS * n, device=XPU) for n in (2, 6)]
        for n, whole in zip((2, 6), wholes, strict=True):
            dist.all_gather_into_tensor(whole, mine(torch.float32, n))
    works.wait()
    for n, whole in zip((2, 6), wholes, strict=True):
        check(whole, torch.cat(all_ranks(torch.float32, n)))
    with dist._coalescing_manager() as works:
        parts = [torch.zeros(n, device=XPU) for n in (1, 3)]
        for n, part in zip((1, 3), parts, strict=True):
            dist.reduce_scatter_tensor(part, mine(torch.float32, n * RANKS))
    for n, part in zip((1, 3), parts, strict=True):
        check(
            part, sum(all_ranks(torch.float32, n * RANKS)).chunk(RANKS)[dist.get_rank()]
        )


def peers() -> None:
    other = 1 - dist.get_rank()
    given, found = mine(), torch.zeros(6, device=XPU)
    batch = [dist.P2POp(dist.isend, given, other), dist.P2POp(dist.irecv, found, other)]
    for work in dist.batch_isend_irecv(batch):
        work.wait()
    check(found, of_rank(other))
    if dist.get_rank() == 0:
        dist.send(given * 2, 1, tag=7)
    else:
        assert dist.recv(found, tag=7) == 0
        check(found, of_rank(0) * 2)
    flags = torch.zeros(3, dtype=torch.bool, device=XPU)
    if dist.get_rank() == 0:
        dist.send(~flags, 1)
    else:
        dist.recv(flags, 0)
        assert flags.all()


def objects() -> None:
    found: list[Any] = [None] * RANKS
    dist.all_gather_object(found, {"rank": dist.get_rank(), "tensor": mine()})
    assert [each["rank"] for each in found] == list(range(RANKS))
    for each, expected in zip(found, all_ranks(), strict=True):
        check(each["tensor"], expected)
    given: list[Any] = [mine()] if dist.get_rank() == 1 else [None]
    dist.broadcast_object_list(given, 1)
    check(given[0], of_rank(1))


def groups() -> None:
    pair = dist.new_group(list(range(RANKS)))
    alone = [dist.new_group([rank]) for rank in range(RANKS)][dist.get_rank()]
    first, second, third = mine(), mine(), mine()
    works = [
        dist.all_reduce(first, async_op=True),
        dist.all_reduce(second, group=pair, async_op=True),
        dist.all_reduce(third, group=alone, async_op=True),
    ]
    for work in reversed(works):
        work.wait()
    check(first, sum(all_ranks()))
    check(second, sum(all_ranks()))
    check(third, of_rank(dist.get_rank()))
    dist.destroy_process_group(pair)


def group_of_gloo() -> None:
    """gloo alone, and gloo for xpu, take xpu tensors, too."""
    for backend in ("gloo", f"cpu:gloo,{XPU.type}:gloo", BACKEND):
        group = dist.new_group(backend=backend)
        given = mine()
        dist.all_reduce((given * 2).sin_(), group=group)
        dist.all_reduce(given, group=group)
        check(given, sum(all_ranks()))
        if backend != BACKEND:
            host = of_rank(dist.get_rank())
            dist.all_reduce(host, group=group)
            check(given, host)


def barriers() -> None:
    dist.barrier()
    dist.barrier(device_ids=[0])
    group = dist.new_group(backend="gloo")
    dist.monitored_barrier(group)


def functional() -> None:
    import torch.distributed._functional_collectives as functions

    group = dist.group.WORLD
    check(functions.all_reduce(mine(), "sum", group).clone(), sum(all_ranks()))
    gathered = functions.all_gather_tensor(mine(), 0, group)
    check(gathered.clone(), torch.cat(all_ranks()))
    scattered = functions.reduce_scatter_tensor(mine(), "avg", 0, group)
    check(scattered.clone(), (sum(all_ranks()) / RANKS).chunk(RANKS)[dist.get_rank()])
    several = functions.all_reduce_coalesced([mine(), mine()], "sum", group)
    for each in several:
        check(each.clone(), sum(all_ranks()))


def compiled() -> None:
    """In a group that code for CPU tensors could not use."""
    import torch.distributed._functional_collectives as functions

    group = dist.new_group(backend=BACKEND)

    def summed(x: torch.Tensor) -> torch.Tensor:
        return functions.all_reduce(x * 2, "sum", group) + 1

    found = torch.compile(summed, fullgraph=True)(mine())
    check(found, sum(all_ranks()) * 2 + 1)


def errors_of_a_call() -> None:
    for call in (
        lambda: dist.all_gather_into_tensor(torch.zeros(5, device=XPU), mine()),
        lambda: dist.reduce_scatter_tensor(torch.zeros(5, device=XPU), mine()),
        lambda: dist.all_reduce(
            torch.zeros(2, device=XPU).to(torch.float8_e4m3fn), dist.ReduceOp.SUM
        ),
    ):
        try:
            call()
        except (ValueError, RuntimeError):
            continue
        raise AssertionError("no error")
    given = mine()
    dist.all_reduce(given)
    check(given, sum(all_ranks()))


if __name__ == "__main__":
    main(globals())
