"""Device types whose tensors are those of another device under their own name, as a
prototype's. Imports nothing of Inductor: a room above registers them at any time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._ops import OpOverload


class MakesCode(Protocol):
    """Returns a function of tensors of the device `index` that calls `function` with
    those of the device behind. written: the positions of the inputs that `function`
    writes to. on_device: for each output, whether it belongs on the device."""

    def __call__(
        self,
        function: Callable[[list[Any]], Sequence[Any]],
        index: int,
        written: list[int],
        on_device: list[bool],
    ) -> Callable[[list[Any]], list[Any]]: ...


class CompilesGraphs(Protocol):
    """Returns a function that computes a functional graph of the device's tensors. Raises
    NotImplementedError for a graph that it does not compile."""

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: Sequence[Any]
    ) -> Callable[..., Any]: ...


@dataclass(frozen=True, slots=True)
class RenamedDevice:
    """type: "ipu". behind: "cpu" or "xpu"; there, device i is xpu:i.

    to_own, to_behind: the tensor of the one in place of the other's.
    current: the index of this thread's current device.
    kernels: the ops that have a kernel of the device's own, which graphs call.
    compiler: the vendor's own, of whole graphs; None if there is none.
    """

    type: str
    behind: str
    to_own: Callable[[Tensor, int], Tensor]
    to_behind: Callable[[Tensor], Tensor]
    make_code: MakesCode
    current: Callable[[], int]
    kernels: Callable[[], frozenset[OpOverload]]
    compiler: Callable[[], CompilesGraphs | None]


_known: dict[str, RenamedDevice] = {}


def add(device: RenamedDevice) -> None:
    """From now on torch.compile takes tensors of the type."""
    _known[device.type] = device


def find(type: str) -> RenamedDevice | None:
    return _known.get(type)


def behind(device: torch.device) -> torch.device:
    """The device behind a renamed one; any other device itself."""
    known = _known.get(device.type)
    if known is None:
        return device
    if known.behind == "cpu":
        return torch.device("cpu")
    return torch.device(known.behind, index_of(device))


def is_ours(device: torch.device) -> bool:
    """Whether it is xpu or a renamed device."""
    return device.type == "xpu" or device.type in _known


def index_of(device: torch.device) -> int:
    """The index of a renamed device, which may be that of the current one."""
    return _known[device.type].current() if device.index is None else device.index
