"""One rank of two: runs the collectives below on xpu over gloo, prints what they gave.

    python two_ranks.py RANK PORT

Prints one JSON object: per case what it returned, or the type and text of its error.
"""

import json
import os
import sys
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

import xpurt

Case = Callable[[int], object]


def of_rank(rank: int) -> torch.Tensor:
    return torch.full((3,), rank + 1.0, device="xpu")


def all_reduce(rank: int) -> object:
    t = of_rank(rank)
    dist.all_reduce(t)
    return t.tolist()


def all_reduce_async(rank: int) -> object:
    t = of_rank(rank)
    dist.all_reduce(t, async_op=True).wait()
    return (t * 2).tolist()


def all_gather(rank: int) -> object:
    parts = [torch.zeros(3, device="xpu") for _ in range(2)]
    dist.all_gather(parts, of_rank(rank))
    return [part.tolist() for part in parts]


def all_gather_into_tensor(rank: int) -> object:
    whole = torch.zeros(6, device="xpu")
    dist.all_gather_into_tensor(whole, of_rank(rank))
    return whole.tolist()


def broadcast(rank: int) -> object:
    t = of_rank(rank)
    dist.broadcast(t, 1)
    return t.tolist()


def reduce_scatter(rank: int) -> object:
    part = torch.zeros(1, device="xpu")
    dist.reduce_scatter_tensor(part, torch.tensor([1.0, 2.0], device="xpu"))
    return part.tolist()


def all_to_all(rank: int) -> object:
    found = torch.zeros(2, device="xpu")
    given = torch.tensor([10.0 * rank, 10.0 * rank + 1], device="xpu")
    dist.all_to_all_single(found, given)
    return found.tolist()


def send_and_receive(rank: int) -> object:
    t = of_rank(rank)
    if rank == 0:
        dist.send(t, 1)
    else:
        dist.recv(t, 0)
    return t.tolist()


def functional(rank: int) -> object:
    name = dist.group.WORLD.group_name
    made = torch.ops._c10d_functional.all_reduce(of_rank(rank), "sum", name)
    made = torch.ops._c10d_functional.wait_tensor(made)
    return [str(made.device), made.tolist()]


def parallel_module(rank: int) -> object:
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 1).to("xpu")
    parallel = torch.nn.parallel.DistributedDataParallel(module)
    parallel(of_rank(rank)).sum().backward()
    assert module.weight.grad is not None
    return module.weight.grad.tolist()


def by_way_of_the_cpu(rank: int) -> object:
    t = of_rank(rank)
    host = t.cpu()
    dist.all_reduce(host)
    return t.copy_(host).tolist()


def objects(rank: int) -> object:
    found: list[object] = [None, None]
    dist.all_gather_object(found, of_rank(rank))
    return [f"{each.device} {each.tolist()}" for each in found]  # type: ignore[attr-defined]


def barrier(rank: int) -> object:
    dist.barrier()
    return "passed"


def replica_elsewhere(rank: int) -> object:
    """Under AUTO another device holds the bytes, too."""
    t = of_rank(rank)
    kind = "cpu" if xpurt.get_xpu_mapping() == "CPU" else "gpu"
    with xpurt.kernel_policy("sycl"), xpurt.prefer(kind):
        before = (t * 10).tolist()
        dist.all_reduce(t)
        return [before, (t * 10).tolist()]


def what_is_left(rank: int) -> object:
    """Of a tensor after a collective that was refused."""
    t = of_rank(rank)
    try:
        dist.all_reduce(t)
    except xpurt.errors.FallbackError:
        return t.tolist()
    return "not refused"


CASES: tuple[Case, ...] = (
    all_reduce,
    all_reduce_async,
    all_gather,
    all_gather_into_tensor,
    broadcast,
    reduce_scatter,
    all_to_all,
    send_and_receive,
    functional,
    parallel_module,
    by_way_of_the_cpu,
    objects,
    barrier,
    replica_elsewhere,
    what_is_left,
)


def main(rank: int, port: str) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    limit = timedelta(seconds=120)
    dist.init_process_group("gloo", rank=rank, world_size=2, timeout=limit)
    found: dict[str, object] = {}
    for case in CASES:
        if case is parallel_module and xpurt.get_xpu_mapping() == "AUTO":
            continue  # its import of the compiler takes longer than all the others
        try:
            found[case.__name__] = case(rank)
        except Exception as error:
            found[case.__name__] = f"{type(error).__name__}: {error}"
    dist.destroy_process_group()
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
