"""The cases of a rank: models optimized for inference, in parallel. Each is compared with
the model as it was written, in the same wrapper."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from ranks import main
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

import xpurt
from xpurt.optimization.requested_form import optimized as optimized_form

warnings.simplefilter("ignore")

STEPS = 3

Wrap = Callable[[nn.Module, str], nn.Module]


def _network() -> nn.Module:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(8)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    layers = (
        nn.Conv2d(3, 8, 3, padding=1, bias=False), norm, nn.ReLU(), nn.Flatten(),
        nn.Linear(8 * 36, 16), nn.ReLU(), nn.Linear(16, 6),
    )  # fmt: skip
    return nn.Sequential(*layers).eval()


def _batch(kind: str) -> Tensor:
    generator = torch.Generator().manual_seed(dist.get_rank())
    return torch.rand(4, 3, 6, 6, generator=generator).to(kind)


def _as_one_group(model: nn.Module, kind: str) -> nn.Module:
    return fully_shard(model, mesh=init_device_mesh(kind, (2,)))


def _layer_by_layer(model: nn.Module, kind: str) -> nn.Module:
    mesh = init_device_mesh(kind, (2,))
    for each in model.children():
        if any(True for _ in each.parameters()):
            fully_shard(each, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _in_flat_parameters(model: nn.Module, kind: str) -> nn.Module:
    return FullyShardedDataParallel(model, device_id=torch.device(kind, 0))


def _in_flat_parameters_of_their_own(model: nn.Module, kind: str) -> nn.Module:
    device = torch.device(kind, 0)
    return FullyShardedDataParallel(model, device_id=device, use_orig_params=True)


def _in_ddp(model: nn.Module, kind: str) -> nn.Module:
    return DistributedDataParallel(model)


def _values_over_steps(model: nn.Module, wrap: Wrap, kind: str) -> list[Tensor]:
    """Of inference, before each step of an optimizer and after the last."""
    x = _batch(kind)
    with torch.no_grad(), optimized_form():
        model(x)  # weights are packed before they are sharded
    parallel = wrap(model, kind)
    optimizer = torch.optim.SGD(parallel.parameters(), 0.5)
    found = []
    for _ in range(STEPS):
        with torch.no_grad(), optimized_form():
            found.append(parallel(x).float())
        parallel.train()
        optimizer.zero_grad()
        parallel(x).float().square().mean().backward()
        optimizer.step()
        parallel.eval()
    with torch.no_grad(), optimized_form():
        found.append(parallel(x).float())
    return found


def _is_the_same(wrap: Wrap, kind: str, dtype: torch.dtype | None = None) -> None:
    model = _network().to(kind)
    optimized = xpurt.optimize(model, dtype=dtype, sample_input=_batch(kind))
    report: Any = optimized.report
    assert report.done
    found = _values_over_steps(optimized, wrap, kind)
    expected = _values_over_steps(copy.deepcopy(model), wrap, kind)
    assert not torch.allclose(expected[0], expected[-1], rtol=0.1)
    near = 1e-3 if dtype is None else 0.1
    for one, other in zip(expected, found, strict=True):
        assert_close(other, one, rtol=near, atol=near * float(one.abs().max()))


def one_group_on_the_cpu() -> None:
    _is_the_same(_as_one_group, "cpu")


def one_group_on_xpu() -> None:
    _is_the_same(_as_one_group, "xpu")


def layers_on_the_cpu() -> None:
    _is_the_same(_layer_by_layer, "cpu")


def layers_on_xpu() -> None:
    _is_the_same(_layer_by_layer, "xpu")


def layers_in_bfloat16_on_the_cpu() -> None:
    _is_the_same(_layer_by_layer, "cpu", torch.bfloat16)


def layers_in_bfloat16_on_xpu() -> None:
    _is_the_same(_layer_by_layer, "xpu", torch.bfloat16)


def flat_parameters() -> None:
    _is_the_same(_in_flat_parameters, "xpu")


def flat_parameters_of_their_own() -> None:
    _is_the_same(_in_flat_parameters_of_their_own, "xpu")


def ddp_on_the_cpu() -> None:
    _is_the_same(_in_ddp, "cpu")


def ddp_on_xpu() -> None:
    _is_the_same(_in_ddp, "xpu")


def a_sharded_model_is_optimized() -> None:
    """Its layers run as they were written."""
    model = _layer_by_layer(_network(), "cpu")
    x = _batch("cpu")
    with torch.no_grad(), optimized_form():
        expected = model(x)
        optimized = xpurt.optimize(model, inplace=True)
        assert_close(optimized(x), expected)
        for each in model.parameters():
            assert isinstance(each, DTensor)
            each.mul_(2)
        assert not torch.allclose(optimized(x), expected, rtol=0.1)


if __name__ == "__main__":
    main(globals())
