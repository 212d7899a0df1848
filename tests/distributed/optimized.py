"""The cases of a rank: training with split parameters, in parallel."""

import warnings

import pytest
import torch
import torch.distributed as dist
from ranks import main
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from xpurt.optimization.training.optimize_training import optimize_for_training

warnings.simplefilter("ignore")

STEPS = 4


def _network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)
    )


def _batch(seed: int, device: str) -> Tensor:
    return torch.rand(8, 8, generator=torch.Generator().manual_seed(seed)).to(device)


def _optimized(
    model: nn.Module,
) -> tuple[nn.Module, torch.optim.Optimizer]:
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return optimize_for_training(model, optimizer, inplace=True)[:2]


def _train_in_ddp(device: str, seed: int) -> None:
    """The ranks begin with other weights and have other batches."""
    model, optimizer = _optimized(_network(seed).to(device))
    alone = _network(0).to(device)
    parallel = DistributedDataParallel(model)
    assert _are_equal_on_all_ranks(model)
    first = model.state_dict()
    assert all(torch.equal(first[k], v) for k, v in alone.state_dict().items())
    for step in range(STEPS):
        optimizer.zero_grad()
        parallel(_batch(2 * step + dist.get_rank(), device)).square().mean().backward()
        optimizer.step()
    last = model.state_dict()
    assert not torch.equal(first["0.weight"], last["0.weight"])
    assert _are_equal_on_all_ranks(model)


def lower_halves_are_sent_once() -> None:
    """With forward_sync_buffers=False; else in each forward."""
    for options, sent in (({}, True), ({"forward_sync_buffers": False}, False)):
        model, _ = _optimized(_network(dist.get_rank()))
        parallel = DistributedDataParallel(model, **options)
        assert _are_equal_on_all_ranks(model)
        lower = model.get_buffer("0.weight_lower_half")
        before = lower.clone()
        lower.add_(dist.get_rank())
        parallel(_batch(0, "cpu"))
        assert torch.equal(lower, before) == (sent or dist.get_rank() == 0)


def without_buffers_the_lower_halves_differ() -> None:
    model, _ = _optimized(_network(dist.get_rank()))
    DistributedDataParallel(model, broadcast_buffers=False)
    assert not _are_equal_on_all_ranks(model)


def _are_equal_on_all_ranks(model: nn.Module) -> bool:
    """Bit by bit; the statistics of batch norms are those of each rank."""
    parameters = {name for name, _ in model.named_parameters()}
    values = [v.flatten() for k, v in model.state_dict().items() if k in parameters]
    own = torch.cat(values)
    others = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(others, own)
    return all(torch.equal(own, other) for other in others)


def ddp_on_the_cpu() -> None:
    _train_in_ddp("cpu", dist.get_rank())


def ddp_on_xpu() -> None:
    _train_in_ddp("xpu", dist.get_rank())


def gradients_are_averaged() -> None:
    """Two ranks are one process with both batches."""
    model, optimizer = _optimized(_plain())
    parallel = DistributedDataParallel(model)
    whole, of_whole = _optimized(_plain())
    for step in range(STEPS):
        batches = [_batch(2 * step + rank, "cpu") for rank in range(2)]
        for each, of_each, x in (
            (parallel, optimizer, batches[dist.get_rank()]),
            (whole, of_whole, torch.cat(batches)),
        ):
            of_each.zero_grad()
            each(x).square().mean().backward()
            of_each.step()
    torch.testing.assert_close(
        model.state_dict(), whole.state_dict(), rtol=0, atol=2e-3
    )


def _plain() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def shards_are_refused() -> None:
    model = _plain()
    fully_shard(model)
    with pytest.raises(TypeError, match="MixedPrecisionPolicy"):
        _optimized(model)


def later_shards_are_refused() -> None:
    model, optimizer = _optimized(_plain())
    model(_batch(0, "cpu")).sum().backward()
    fully_shard(model)
    with pytest.raises(RuntimeError, match="Don't cast or shard a model"):
        optimizer.step()


def ddp_is_refused() -> None:
    with pytest.raises(ValueError, match="with the model inside of it"):
        _optimized(DistributedDataParallel(_plain()))


if __name__ == "__main__":
    main(globals())
