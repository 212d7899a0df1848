"""`torch.compile` on a prototype device."""

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from xpurt import _prototype
from xpurt.compiler.renamed.devices import CompilesGraphs, RenamedDevice, add
from xpurt.prototype.vendor_kernels import vendor_ops

_compilers: Final[dict[str, CompilesGraphs]] = {}


def take_graphs(name: str, type: str, behind: str) -> None:
    """From now on Inductor compiles for the device. type: as PyTorch's enum has it."""

    def to_own(tensor: Tensor, index: int) -> Tensor:
        return _prototype.to_prototype(tensor, type, index)

    def make_code(
        function: Callable[[list[Any]], Sequence[Any]],
        index: int,
        written: list[int],
        on_device: list[bool],
    ) -> Callable[[list[Any]], list[Any]]:
        return _prototype.RenamedCode(function, type, index, written, on_device)

    add(
        RenamedDevice(
            name,
            behind,
            to_own,
            _prototype.from_prototype,
            make_code,
            functools.partial(_prototype.prototype_current, type),
            functools.partial(vendor_ops, type),
            functools.partial(_compilers.get, name),
        )
    )


def register_compiler(name: str, function: CompilesGraphs | None) -> None:
    """See `xpurt.prototype.register_compiler`."""
    if function is None:
        _compilers.pop(name, None)
    elif callable(function):
        _compilers[name] = function
    else:
        raise TypeError(
            "a compiler is a function of a torch.fx.GraphModule and its example inputs; "
            f"found {function!r}"
        )
    if "torch._dynamo" in sys.modules:  # its import takes long
        torch.compiler.reset()
