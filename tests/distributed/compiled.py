"""The cases of a rank: compiled training in parallel, against one process without."""

import warnings
from typing import Any

import torch
import torch.distributed as dist
import training as eager
from ranks import RANKS, main
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

warnings.simplefilter("ignore")

XPU = eager.XPU
SMALL_BUCKET_BYTES = 512


class Layer(nn.Module):
    """Dynamo compiles no frames of PyTorch's own modules, which a hook leaves alone."""

    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.linear(x)
        return found


class Network(nn.Module):
    """The network of the other cases."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(map(Layer, eager._model()[::2]))

    def forward(self, x: Tensor) -> Tensor:
        first, *others = self.layers
        x = first(x)
        for layer in others:
            x = layer(x.relu())
        return x


def _train_and_check(module: Any) -> int:
    """Returns how many graphs were compiled."""
    from torch._dynamo.utils import counters

    torch.compiler.reset()
    counters.clear()
    eager._train_and_check(module)
    made = int(counters["stats"]["unique_graphs"])
    assert made > 0
    return made


def ddp() -> None:
    """Dynamo divides the graph where a bucket ends, so that exchanges overlap."""
    before = dist._DEFAULT_FIRST_BUCKET_BYTES
    dist._DEFAULT_FIRST_BUCKET_BYTES = SMALL_BUCKET_BYTES
    try:
        _train_and_check(
            torch.compile(
                DistributedDataParallel(
                    Network().to(XPU), bucket_cap_mb=SMALL_BUCKET_BYTES / 2**20
                )
            )
        )
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = before


def ddp_of_a_compiled_module() -> None:
    compiled = torch.compile(Network().to(XPU), fullgraph=True)
    _train_and_check(DistributedDataParallel(compiled))


def _fsdp2() -> Network:
    from torch.distributed.fsdp import fully_shard

    model = Network().to(XPU)
    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    return model


def fsdp2() -> None:
    """Hooks of the layers divide the graph."""
    assert _train_and_check(torch.compile(_fsdp2())) > 1


def fsdp2_of_compiled_layers() -> None:
    from torch.distributed.fsdp import fully_shard

    model = Network().to(XPU)
    for layer in model.layers:
        layer.compile(fullgraph=True)
        fully_shard(layer)
    fully_shard(model)
    _train_and_check(model)


def tensor_parallel() -> None:
    from torch.distributed.tensor import parallel

    model = parallel.parallelize_module(
        Network().to(XPU),
        init_device_mesh("xpu", (RANKS,)),
        {
            "layers.0.linear": parallel.ColwiseParallel(),
            "layers.1.linear": parallel.RowwiseParallel(),
        },
    )
    compiled: nn.Module = torch.compile(model, fullgraph=True)
    eager._train(compiled, eager._sgd(model), eager.X.to(XPU), eager.Y.to(XPU))
    eager._check(model.parameters())


if __name__ == "__main__":
    main(globals())
