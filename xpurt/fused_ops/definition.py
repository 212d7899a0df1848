"""Defines an op of `torch.ops.xpurt` for CPU tensors and for xpu.

Note [Fused ops]
~~~~~~~~~~~~~~~~
An op has a kernel per device, which may run as one step what PyTorch's ops do in
several; a fake kernel, which gives sizes and types to the compiler; and a gradient
formula. It is opaque to the compiler. Kernels run below autograd. What they write is
new, so that no result aliases an argument.

A gradient formula has two forms. Ordinarily it runs without a graph of its own, and may
call kernels that have no gradient. With `create_graph=True` the plain composition of
PyTorch's ops is differentiated, so second derivatives are right, at the price of its
memory.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from xpurt.fused_ops.host_copies import or_on_host

_library = torch.library.Library("xpurt", "FRAGMENT")  # type: ignore[no-untyped-call]

Function = Callable[..., Any]


def define(
    schema: str,
    *,
    cpu: Function,
    xpu: Function,
    fake: Function,
    save: Function | None = None,
    gradient: Function | None = None,
) -> None:
    """Defines an op that writes no argument. Without a `gradient` it has none.

    schema: "name(arguments) -> results". The dispatcher leaves out arguments that have
    their default, so the functions have the same defaults.
    save, gradient: `setup_context` and `backward` of `torch.library.register_autograd`.
    """
    name = schema.partition("(")[0]
    _library.define(schema)  # type: ignore[no-untyped-call]
    _library.impl(name, cpu, "CPU")  # type: ignore[no-untyped-call]
    _library.impl(name, or_on_host(name, xpu, cpu), "XPU")  # type: ignore[no-untyped-call]
    _register_fake(name, fake)
    if gradient is not None:
        torch.library.register_autograd(
            f"xpurt::{name}", gradient, setup_context=save, lib=_library
        )


# `torch.library.register_fake` looks for the caller's lines in all modules, two
# milliseconds an op, for the message of an error: here that names the function.
def _register_fake(name: str, fake: Function) -> None:
    code = fake.__code__
    source = f"{code.co_filename}:{code.co_firstlineno}"
    entry = torch._library.simple_registry.singleton.find(f"xpurt::{name}")
    handle = entry.fake_impl.register(fake, source, lib=_library)
    _library._registration_handles.append(handle)


def define_by_ops(schema: str, function: Function) -> None:
    """Defines an op that is a composition of others, whose gradients it has."""
    _library.define(schema)  # type: ignore[no-untyped-call]
    name = schema.partition("(")[0]
    _library.impl(name, function, "CompositeImplicitAutograd")  # type: ignore[no-untyped-call]


def cast_under_autocast(name: str, positions: Sequence[int]) -> None:
    """Under `torch.autocast` the arguments at these positions are cast, as those of
    PyTorch's products: from floating types other than float64 to autocast's type."""
    for device, key in (("cpu", "AutocastCPU"), ("xpu", "AutocastXPU")):
        _library.impl(name, _casting(name, device, positions), key)  # type: ignore[no-untyped-call]


def _casting(name: str, device: str, positions: Sequence[int]) -> Function:
    op = getattr(torch.ops.xpurt, name).default

    def cast(argument: Any, dtype: torch.dtype) -> Any:
        casts = (
            isinstance(argument, Tensor)
            and argument.is_floating_point()
            and argument.dtype != torch.float64
        )
        return argument.to(dtype) if casts else argument

    def kernel(*arguments: Any) -> Any:
        dtype = torch.get_autocast_dtype(device)
        given = list(arguments)
        for position in positions:
            if position < len(given):
                given[position] = cast(given[position], dtype)
        with torch.autocast(device, enabled=False):
            return op(*given)

    return kernel


def differentiable_gradients(
    formula: Function, inputs: Sequence[Any], grads: Sequence[Tensor | None]
) -> tuple[Any, ...]:
    """Gradients of `formula(*inputs)` that can be differentiated again, one for each
    input; None for one that needs none. `grads` are those of its results."""
    with torch.enable_grad():
        made = formula(*inputs)
    results = made if isinstance(made, tuple) else (made,)
    pairs = [
        (result, grad)
        for result, grad in zip(results, grads, strict=True)
        if grad is not None and result.requires_grad
    ]
    wanted = [
        position
        for position, each in enumerate(inputs)
        if isinstance(each, Tensor) and each.requires_grad
    ]
    found: list[Any] = [None] * len(inputs)
    if not pairs or not wanted:
        return tuple(found)
    gradients = torch.autograd.grad(
        [result for result, _ in pairs],
        [inputs[position] for position in wanted],
        [grad for _, grad in pairs],
        create_graph=True,
        allow_unused=True,
    )
    for position, gradient in zip(wanted, gradients, strict=True):
        found[position] = gradient
    return tuple(found)
