"""Standard workloads for the simulator, described by what they compute. Each generator
returns a `Workload`; traced ones take a few seconds."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpurt_tools.workloads.grids import fft, stencil
from xpurt_tools.workloads.layered import layered
from xpurt_tools.workloads.linear_algebra import cholesky, lu, qr
from xpurt_tools.workloads.workload import Task, Workload, repeated

if TYPE_CHECKING:
    from torch import fx

__all__ = [
    "Task",
    "Workload",
    "cholesky",
    "fft",
    "from_fx",
    "layered",
    "lu",
    "qr",
    "repeated",
    "resnet_step",
    "stencil",
    "traced",
    "transformer_step",
]


def resnet_step(batch: int = 32) -> Workload:
    """A training step of ResNet-18 on images of 224 x 224, traced from PyTorch."""
    from xpurt_tools.workloads import tracing

    return tracing.resnet_step(batch)


def transformer_step(
    layers: int = 6, width: int = 512, batch: int = 8, length: int = 512
) -> Workload:
    """A training step of a transformer, traced from PyTorch."""
    from xpurt_tools.workloads import tracing

    return tracing.transformer_step(layers, width, batch, length)


def traced(name: str, function: Callable[..., Any], *arguments: Any) -> Workload:
    """The aten ops that a call of `function` runs. Tensors on meta are enough.

    Views are no tasks: a reader of a view takes its bytes from the op that made the
    view's base. Inputs are on every device.
    """
    from xpurt_tools.workloads import tracing

    return tracing.traced(name, function, *arguments)


def from_fx(name: str, graph: "fx.Graph") -> Workload:
    """As `traced`, for a graph that was traced before: its nodes have values of the
    right shapes in `meta["val"]`."""
    from xpurt_tools.workloads import tracing

    return tracing.from_fx(name, graph)
