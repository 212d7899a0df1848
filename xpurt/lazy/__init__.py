"""Lazy tensors whose graphs run on xpu, or on another device.

Ops on the device "lazy" are traced by PyTorch's lazy core, and nothing is computed until a
value is looked at, or `step` cuts the program. Then the traced graph runs on xpu, under the
mapping in force, or on what `init` chooses.
"""

from typing import Literal

import torch

from xpurt import _lazy, optimizer_devices
from xpurt.lazy import (
    device_module,
    list_ops,
    new_ops,
    one_backend,
    ordered_collectives,
    report,
    saved_tensors,
)
from xpurt.lazy.casts import autocast
from xpurt.lazy.compilations import Compilation, Compilations
from xpurt.lazy.compiled_graph import (
    compilations,
    compile_graph,
    compile_sizes,
    find_sizes,
)
from xpurt.lazy.devices import check_type, choose_type, lazy_device, real_device
from xpurt.lazy.graph_text import text
from xpurt.lazy.mode import TracedTensor, mode, run

__all__ = [
    "Compilation",
    "Compilations",
    "TracedTensor",
    "autocast",
    "compilations",
    "fallbacks",
    "init",
    "lazy_device",
    "mode",
    "real_device",
    "step",
    "text",
]


def init(
    compile: Literal["auto", "always", "never"] = "auto",
    sizes: Literal["exact", "symbolic"] = "exact",
    device: str | None = None,
) -> None:
    """Makes xpurt the backend of the device "lazy". More calls change the arguments alone.

    compile: when a traced graph goes to the compiler of torch.compile. "auto": once its runs
    op by op have taken as long as compiling it is expected to take; the faster form, as
    measured, runs from then on. "always": before its first run. "never": graphs run op by op.
    Under `torch.use_deterministic_algorithms(True)` no time chooses: "auto" runs graphs op by
    op, and "always" runs them compiled.

    sizes: for which sizes compiled code is. "exact": for those of its graph. "symbolic":
    graphs that differ in sizes alone share code, from the second one on that is compiled.

    device: the type of the devices that lazy tensors are on: "xpu", "cpu" or the name of a
    prototype device; `lazy:1` is number 1 of them. None: the type in use, at first "xpu".
    It changes while no lazy tensor is alive.

    Raises ValueError for another value of these, and RuntimeError if no xpu device is
    there, if another backend of lazy tensors is in use, if PyTorch lacks the lazy core, or
    if lazy tensors are alive on devices of another type.
    """
    if compile not in ("auto", "always", "never"):
        raise ValueError(
            f'compile is one of "auto", "always" and "never"; found {compile!r}'
        )
    if sizes not in ("exact", "symbolic"):
        raise ValueError(f'sizes is one of "exact" and "symbolic"; found {sizes!r}')
    one_backend.check_core()
    device = _lazy.lazy_device_type() if device is None else device
    check_type(device)
    if device == "xpu":
        torch.xpu.init()
    _lazy.init_lazy_backend()
    choose_type(device)
    symbolic = sizes == "symbolic"
    compiler = compile_sizes if symbolic else compile_graph
    _lazy.set_lazy_compiler(
        None if compile == "never" else compiler,
        compile == "always",
        find_sizes if symbolic else None,
    )
    one_backend.keep()
    report.join()
    saved_tensors.define()
    new_ops.define()
    ordered_collectives.run_at_the_end()
    device_module.define()
    optimizer_devices.allow("lazy", fused=False)
    list_ops.define()


def step(wait: bool = False) -> None:
    """Runs what was traced on the current device. Without `wait` the host goes on while the
    devices compute. Raises RuntimeError before `init`."""
    one_backend.check_there("xpurt.lazy.step()")
    run()
    if wait:
        device_module.wait()


def fallbacks() -> dict[str, int]:
    """How often each op of a lazy program was computed by the CPU, on copies, since
    `torch._lazy.metrics.reset()`."""
    return {
        name: torch._C._lazy._counter_value(name)
        for name in torch._C._lazy._counter_names()
        if name.startswith("aten::")
    }
