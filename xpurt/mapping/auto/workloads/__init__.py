"""Standard work for the simulator, by what it computes. Each generator gives a
`Workload`; traced ones need a few seconds."""

from xpurt.mapping.auto.workloads.grids import fft, stencil
from xpurt.mapping.auto.workloads.layered import layered
from xpurt.mapping.auto.workloads.linear_algebra import cholesky, lu, qr
from xpurt.mapping.auto.workloads.workload import Task, Workload

__all__ = [
    "Task",
    "Workload",
    "cholesky",
    "fft",
    "layered",
    "lu",
    "qr",
    "resnet_step",
    "stencil",
    "transformer_step",
]


def resnet_step(batch: int = 32) -> Workload:
    """A training step of ResNet-18 on images of 224 x 224, traced from PyTorch."""
    from xpurt.mapping.auto.workloads import traced

    return traced.resnet_step(batch)


def transformer_step(
    layers: int = 6, width: int = 512, batch: int = 8, length: int = 512
) -> Workload:
    """A training step of a transformer, traced from PyTorch."""
    from xpurt.mapping.auto.workloads import traced

    return traced.transformer_step(layers, width, batch, length)
