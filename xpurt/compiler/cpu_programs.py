"""Decisions of Inductor about CPU tensors in which it asks whether an xpu is there.

Note [Programs on CPU tensors]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Some functions of Inductor that decide about a graph of CPU tensors ask
``torch.xpu.is_available()``, as the builds of PyTorch that have XPU compiled in differ
in what they support on the CPU. xpurt's PyTorch is a stock build, so the answer for CPU
tensors has to be that of a stock build: `without_xpu` makes a function of PyTorch decide
so. The functions are few, and docs/pytorch_internals.md lists all places that ask.
Rejected: an `is_available` whose answer depends on its caller, which Inductor's caches
and compiled guards would keep for other callers.
"""

import functools
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any, Final, cast

import torch


class _TorchWithoutXpu:
    """The module `torch`, of a process that has no xpu."""

    xpu: Final = SimpleNamespace(
        is_available=lambda: False,
        _is_compiled=lambda: False,
        device_count=lambda: 0,
    )

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


def without_xpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of PyTorch in a process that has no xpu: where it reads
    ``torch.xpu``, nothing is available."""
    plain = cast(FunctionType, function)
    names = {**plain.__globals__, "torch": _TorchWithoutXpu()}
    made = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__)
    return functools.update_wrapper(made, plain)


def decide_as_without_xpu() -> None:
    """Changes the functions of Inductor that treat CPU tensors otherwise beside an xpu."""
    from torch._inductor import decomposition, lowering
    from torch._inductor.kernel.flex import flex_cpu

    # It asks for builds of PyTorch that have XPU, whose C++ code it cannot compile.
    _replace(flex_cpu, "check_cpu_supported", without_xpu)
    _replace(lowering, _LIMITS, _limits_of_the_graph)
    # Only a choice between ops, which are lowered later.
    _replace(decomposition, _LIMITS, without_xpu)


_LIMITS: Final = "needs_fallback_due_to_atomic_add_limitations"


def _replace(module: Any, name: str, made: Callable[..., Any]) -> None:
    setattr(module, name, made(getattr(module, name)))


def _limits_of_the_graph(before: Callable[..., bool]) -> Callable[..., bool]:
    """An xpu adds halves as PyTorch's kernel does; generated C++ is for the CPU."""
    on_the_cpu = without_xpu(before)

    @functools.wraps(before)
    def limits(dtype: torch.dtype) -> bool:
        from torch._inductor.virtualized import V

        types = getattr(V.graph, "device_types", ())
        return (before if "xpu" in types else on_the_cpu)(dtype)

    return limits
