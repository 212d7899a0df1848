"""Random ops of compiled host code, by the generator of xpu.

Note [Random numbers of compiled code]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Compiled host code has CPU tensors only, and its random ops would draw from the CPU's
generator. The program's numbers, its seeds and the state that it saves are those of
xpu's generator. So each random op of such a graph is replaced by an op of this module.
It runs the same op on xpu, and returns a CPU tensor over the result's bytes.

Inductor has fast random numbers of its own, from seeds that it draws once per call; the
op that draws the seeds is replaced as well. With `fallback_random` the numbers are equal
to those of eager xpu.

All ops are defined at once, before the first graph is compiled: a graph from Inductor's
cache may call any of them.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from xpurt import _C

_NAMESPACE: Final = "xpurt_random"

# The random ops that may be in a graph after decomposition.
ATEN: Final = (
    "bernoulli.default bernoulli.p bernoulli.Tensor binomial.default cauchy.default exponential.default "
    "geometric.default log_normal.default multinomial.default native_dropout.default "
    "normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor normal.float_float "
    "normal_functional.default poisson.default rand.default rand_like.default "
    "randint.default randint.low randint_like.Tensor randint_like.default randint_like.low_dtype "
    "randn.default randn_like.default random.default random.from random.to "
    "randperm.default rrelu_with_noise_functional.default uniform.default "
    "_standard_gamma.default"
).split()
_PRIMS: Final = (
    "inductor_seed.default inductor_seeds.default normal.default uniform.default"
).split()

_library: Any = torch.library.Library(_NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
_replacements: dict[Any, Any] = {}


def define() -> None:
    """Defines the ops. A second call does nothing."""
    if _replacements:
        return
    for namespace, names in (("aten", ATEN), ("prims", _PRIMS)):
        for name in names:
            packet, _, overload = name.partition(".")
            define_for(namespace, packet, overload)


def replace(graph: torch.fx.GraphModule) -> None:
    """Replaces the random ops of a graph for the host."""
    from torch._inductor.lowering import lowerings, make_fallback

    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target in _replacements:
            node.target = _replacements[node.target]
            # Without it an op is called only if config.implicit_fallbacks is set.
            if node.target not in lowerings:
                make_fallback(node.target, warn=False)  # type: ignore[no-untyped-call]
    graph.recompile()


def define_for(namespace: str, packet: str, overload: str) -> None:
    """Defines the op that takes the place of a random op in code for the host."""
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    # aten and prims have ops of the same names.
    ours = f"{namespace}_{packet}"
    full = ours if overload == "default" else f"{ours}.{overload}"
    arguments = str(op._schema).partition("(")[2]
    _library.define(f"{full}({arguments}", tags=(torch.Tag.nondeterministic_seeded,))
    _library.impl(full, _on_xpu(op), "CompositeExplicitAutograd")
    torch.library.register_fake(f"{_NAMESPACE}::{full}", op, lib=_library)
    found = getattr(getattr(torch.ops, _NAMESPACE), ours)
    _replacements[op] = getattr(found, overload)


def _on_xpu(op: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        device = torch.device("xpu", torch.xpu.current_device())

        def moved(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return value.to(device)
            return device if isinstance(value, torch.device) else value

        def shared(value: Any) -> Any:
            return (
                _C.share_with_cpu(value) if isinstance(value, torch.Tensor) else value
            )

        with torch.no_grad():
            args, kwargs = pytree.tree_map(moved, (args, kwargs))
            return pytree.tree_map(shared, op(*args, **kwargs))

    return run
