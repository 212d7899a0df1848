"""Lazy tensors whose graphs run on xpu.

Ops on the device "lazy" are traced by PyTorch's lazy core, and nothing is computed until a
value is looked at, or `step` cuts the program. Then the traced graph runs on xpu, under the
mapping in force.
"""

from typing import Literal

import torch
import torch._lazy
from torch import Tensor

from xpurt import _C
from xpurt.lazy import device_module, new_ops, saved_tensors
from xpurt.lazy.casts import autocast
from xpurt.lazy.compiled_graph import Compilation, compilations, compile_graph

__all__ = [
    "Compilation",
    "autocast",
    "compilations",
    "fallbacks",
    "init",
    "step",
    "text",
]


def init(compile: Literal["auto", "always", "never"] = "auto") -> None:
    """Makes xpu the backend of the device "lazy". More calls change `compile` alone.

    compile: when a traced graph goes to the compiler of torch.compile. "auto": once its runs
    op by op have taken as long as compiling it is expected to take; the faster form, as
    measured, runs from then on. "always": before its first run. "never": graphs run op by op.

    Raises ValueError for another value of `compile`, and RuntimeError if no xpu device is
    there or if another backend of lazy tensors is in use.
    """
    if compile not in ("auto", "always", "never"):
        raise ValueError(
            f'compile is one of "auto", "always" and "never"; found {compile!r}'
        )
    torch.xpu.init()
    _C.init_lazy_backend()
    _C.set_lazy_compiler(
        None if compile == "never" else compile_graph, compile == "always"
    )
    saved_tensors.define()
    new_ops.define()
    device_module.define()


def step(wait: bool = False) -> None:
    """Runs what was traced on the current device. Without `wait` the host goes on while the
    devices compute."""
    torch._lazy.mark_step(wait=wait)
    if wait:
        torch.xpu.synchronize()


def text(tensor: Tensor) -> str:
    """What will be computed for a lazy tensor: the traced nodes, and the graph of aten ops
    that they become.

    Raises TypeError for a tensor of another device.
    """
    if tensor.device.type != "lazy":
        raise TypeError(
            f'text() takes a tensor of the device "lazy"; found one on {tensor.device}'
        )
    nodes = torch._C._lazy._get_tensors_text([tensor])
    graph = torch._C._lazy._get_tensors_backend([tensor])
    return f"{nodes}\n{graph}"


def fallbacks() -> dict[str, int]:
    """How often each op was computed by the CPU, on copies, since the metrics were reset."""
    return {
        name: torch._C._lazy._counter_value(name)
        for name in torch._C._lazy._counter_names()
        if name.startswith("aten::")
    }
