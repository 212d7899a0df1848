"""The cases of a rank: the order of collectives and other work, on streams and groups."""

import random
import time
import warnings
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist
from rank_tensors import XPU, all_ranks, check, mine, of_rank
from ranks import RANKS, main

import xpurt

warnings.simplefilter("ignore")

SEQUENCES = 200


def _queued(case: Callable[[], None]) -> Callable[[], None]:
    """Runs the case with kernels on queues, for small tensors on the CPU device, too."""

    def run() -> None:
        with xpurt.kernel_policy("sycl"):
            case()

    run.__doc__ = case.__doc__
    return run


def futures() -> None:
    given = mine()
    future = dist.all_reduce(given, async_op=True).get_future()
    doubled = future.then(lambda done: done.value()[0] * 2).wait()
    check(doubled, sum(all_ranks()) * 2)
    large = torch.full((9 << 20,), dist.get_rank() + 1.0, device=XPU)
    (found,) = dist.all_reduce(large, async_op=True).get_future().wait()
    assert found.data_ptr() == large.data_ptr()
    check(large[:: 1 << 20], torch.full((9,), 3.0))


@_queued
def order_with_the_current_stream() -> None:
    """Pending work on the tensor comes before the collective, and later work after."""
    given = torch.full((1 << 20,), dist.get_rank() + 1.0, device=XPU)
    for _ in range(20):
        given = given * 2 - given
    work = dist.all_reduce(given, async_op=True)
    work.wait()
    after = given * 10
    check(after[:3], torch.full((3,), 30.0))


def wait_blocks_the_stream_alone() -> None:
    """Where results are copied to the device, wait() returns before the other rank has
    called the collective. The stream waits."""
    if xpurt.get_xpu_mapping() != "GPU":
        return  # the results are in memory that the host reads, so it waits
    store = dist.distributed_c10d._get_default_store()
    given = torch.full((5,), dist.get_rank() + 1.0, device=XPU)
    if dist.get_rank() == 1:
        store.wait(["waited for"])
        dist.all_reduce(given)
    else:
        work = dist.all_reduce(given, async_op=True)
        work.wait()
        doubled = work.get_future().then(lambda done: done.value()[0] * 2).wait()
        after = given * 10
        assert not work.is_completed()
        assert not torch.xpu.current_stream().query()
        store.set("waited for", "1")
        check(after, torch.full((5,), 30.0))
        check(doubled, torch.full((5,), 6.0))
        assert work.is_completed()
    check(given, torch.full((5,), 3.0))


@_queued
def order_with_other_streams() -> None:
    streams = [torch.xpu.Stream() for _ in range(3)]
    found = []
    for i, stream in enumerate(streams):
        stream.wait_stream(torch.xpu.current_stream())
        with torch.xpu.stream(stream):
            given = torch.full((1 << 18,), dist.get_rank() + i, device=XPU).mul_(2)
            works = dist.all_reduce(given, async_op=True)
            works.wait()
            found.append(given + 1)
        given.record_stream(stream)
    for stream in streams:
        torch.xpu.current_stream().wait_stream(stream)
    for i, each in enumerate(found):
        check(each[:2], torch.full((2,), 2 * (1 + 2 * i) + 1))


@_queued
def freed_in_flight() -> None:
    """A tensor may be freed while its collective runs: its memory is not used again."""
    works = []
    for i in range(16):
        given = torch.full((1 << 16,), float(i), device=XPU).add_(dist.get_rank())
        works.append((dist.all_reduce(given, async_op=True), given[:1]))
        del given
        torch.full((1 << 16,), -1.0, device=XPU).mul_(3)
    for i, (work, first) in enumerate(works):
        work.wait()
        assert first.item() == 2 * i + 1


def lazy_copies() -> None:
    """A tensor that shares its bytes gets its own before a collective writes them."""
    with xpurt.lazy_copies():
        host = of_rank(dist.get_rank(), torch.float32, 1 << 16)
        given = host.to(XPU)
        dist.all_reduce(given)
        assert torch.equal(host, of_rank(dist.get_rank(), torch.float32, 1 << 16))
        check(given, sum(all_ranks(torch.float32, 1 << 16)))


def parts_of_a_storage() -> None:
    """Another device works on one half of a storage while the other half is summed."""
    kind = "cpu" if xpurt.get_xpu_mapping() == "CPU" else "gpu"
    whole = torch.ones(2, 1 << 18, device=XPU)
    if dist.get_rank() == 1:
        time.sleep(0.3)  # so that rank 0 changes its half in between
    work = dist.all_reduce(whole[0], async_op=True)
    with xpurt.kernel_policy("sycl"), xpurt.prefer(kind):
        whole[1].mul_(3)
        torch.xpu.synchronize()
    work.wait()
    check(whole[:, -1], torch.tensor([float(RANKS), 3.0]))


def _array(seed: int, step: int, rank: int, size: int) -> np.ndarray:
    draws = np.random.default_rng((seed, step, rank))
    return draws.integers(-8, 8, size).astype(np.float32)


Arrays = list[np.ndarray]


def _reduced(
    given: torch.Tensor, group: dist.ProcessGroup
) -> tuple[dist.Work, torch.Tensor]:
    return dist.all_reduce(given, group=group, async_op=True), given


def _gathered(
    given: torch.Tensor, group: dist.ProcessGroup
) -> tuple[dist.Work, torch.Tensor]:
    whole = given.new_empty(given.numel() * group.size())
    return dist.all_gather_into_tensor(whole, given, group, async_op=True), whole


def _scattered(
    given: torch.Tensor, group: dist.ProcessGroup
) -> tuple[dist.Work, torch.Tensor]:
    part = given.new_empty(given.numel() // group.size())
    return dist.reduce_scatter_tensor(part, given, group=group, async_op=True), part


def _exchanged(
    given: torch.Tensor, group: dist.ProcessGroup
) -> tuple[dist.Work, torch.Tensor]:
    found = torch.empty_like(given)
    return dist.all_to_all_single(found, given, group=group, async_op=True), found


def _of_numpy(name: str, arrays: Arrays, place: int) -> np.ndarray:
    parts = len(arrays)
    if name == "_reduced":
        return sum(arrays[1:], arrays[0])
    if name == "_gathered":
        return np.concatenate(arrays)
    if name == "_scattered":
        return np.split(sum(arrays[1:], arrays[0]), parts)[place]
    return np.concatenate([np.split(each, parts)[place] for each in arrays])


def random_sequences() -> None:
    """Collectives on random groups and streams, some waited for late, against numpy."""
    operations: tuple[Callable[..., tuple[dist.Work, torch.Tensor]], ...] = (
        _reduced,
        _gathered,
        _scattered,
        _exchanged,
    )
    everyone = list(range(RANKS))
    groups = [dist.new_group(everyone) for _ in range(2)]
    groups.append([dist.new_group([rank]) for rank in everyone][dist.get_rank()])
    streams = [torch.xpu.current_stream(), torch.xpu.Stream(), torch.xpu.Stream()]
    for seed in range(SEQUENCES):
        choose = random.Random(seed)
        pending = []
        for step in range(choose.randint(1, 6)):
            group = choose.choice(groups)
            operation = choose.choice(operations)
            size = 2 * choose.choice((1, 5, 300, 20_000))
            stream = choose.choice(streams)
            is_late = choose.random() < 0.5
            members = dist.get_process_group_ranks(group)
            arrays = [_array(seed, step, rank, size) for rank in members]
            with torch.xpu.stream(stream):
                host = torch.from_numpy(arrays[group.rank()])
                work, found = operation(host.to(XPU).mul_(2), group)
                expected = 2 * _of_numpy(operation.__name__, arrays, group.rank())
                if not is_late:
                    work.wait()
                    found.add_(1)
            pending.append((work, stream, found, expected, is_late))
        for work, stream, found, expected, is_late in pending:
            with torch.xpu.stream(stream):
                if is_late:
                    work.wait()
                    found.add_(1)
                assert np.array_equal(found.cpu().numpy(), expected + 1), seed


if __name__ == "__main__":
    main(globals())
