"""The cases of a rank: training on lazy tensors, against the same on xpu.

Their distance from the training of one process in float64 tells how far the two may be
from each other.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch
import torch._lazy.metrics
import torch.distributed as dist
from ranks import RANKS, main
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

import xpurt.lazy

STEPS = 4
GRAPHS = ("xpurt::run_op_by_op", "xpurt::run_compiled")

Parallel = Callable[[nn.Module], nn.Module]


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 16),
        nn.LayerNorm(16),
        nn.Tanh(),
        nn.Linear(16, 16),
        nn.ReLU(),
        nn.Linear(16, 2),
    )


def _graphs() -> int:
    return sum(torch._lazy.metrics.counter_value(name) or 0 for name in GRAPHS)


@contextmanager
def _one_graph() -> Iterator[None]:
    """All that is traced within, and the step at the end, is one graph."""
    xpurt.lazy.step()
    before = _graphs()
    yield
    xpurt.lazy.step()
    assert _graphs() - before == 1, _graphs() - before


@contextmanager
def _without_exchange(net: nn.Module) -> Iterator[None]:
    if isinstance(net, FSDPModule):
        net.set_requires_gradient_sync(False)
        yield
        net.set_requires_gradient_sync(True)
    elif isinstance(net, DistributedDataParallel):
        with net.no_sync():
            yield
    else:
        yield


def _train(net: nn.Module, x: Tensor, in_one_graph: bool = False) -> list[Tensor]:
    """The parameters and the norms of the gradients. Each step adds up the gradients of
    two parts of the batch."""
    optimizer = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    norms = []
    for step in range(STEPS):
        first, second = x.chunk(2)
        with _one_graph() if in_one_graph and step > 1 else nullcontext():
            optimizer.zero_grad()
            with _without_exchange(net):
                net(first).square().mean().backward()
            net(second).square().mean().backward()
            norms.append(nn.utils.clip_grad_norm_(net.parameters(), 0.5))
            optimizer.step()
    found = [*net.parameters(), *norms]
    whole = (each.detach() for each in found)
    return [
        getattr(each, "full_tensor", lambda each=each: each)().cpu() for each in whole
    ]


def _compare(parallel: Parallel, in_one_graph: bool = False) -> None:
    net = _network()
    x = torch.randn(RANKS, 8, 6)
    # As the ranks add up: the first halves of all parts, then the second ones.
    ordered = torch.cat([part for half in (0, 1) for part in x.chunk(2, dim=1)[half]])
    want = _train(copy.deepcopy(net).double(), ordered.double())
    mine = x[dist.get_rank()]
    eager, lazy = (
        _train(parallel(copy.deepcopy(net).to(device)), mine.to(device), one)
        for device, one in (("xpu", False), ("lazy", in_one_graph))
    )
    error = _error(eager, want)
    assert _error(lazy, want) <= 2 * error, (_error(lazy, want), error)
    assert not xpurt.lazy.fallbacks(), xpurt.lazy.fallbacks()


def _error(found: list[Tensor], want: list[Tensor]) -> float:
    return max(
        float((one - other).abs().max()) for one, other in zip(found, want, strict=True)
    )


def data_parallel() -> None:
    """A step is one graph: DistributedDataParallel makes its buckets in the first two."""
    _compare(
        lambda net: DistributedDataParallel(net, bucket_cap_mb=0.001), in_one_graph=True
    )


def data_parallel_with_options() -> None:
    for options in (
        {"gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
    ):
        _compare(lambda net, options=options: DistributedDataParallel(net, **options))


def fully_sharded() -> None:
    """A step is one graph."""

    def parallel(net: nn.Module) -> nn.Module:
        mesh = init_device_mesh(next(net.parameters()).device.type, (RANKS,))
        for each in (net[0], net[3]):
            fully_shard(each, mesh=mesh)
        return fully_shard(net, mesh=mesh)

    _compare(parallel, in_one_graph=True)


if __name__ == "__main__":
    xpurt.lazy.init(compile="never")
    main(globals())
