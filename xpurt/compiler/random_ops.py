"""Random ops of compiled host code, by the generator of xpu.

Note [Random numbers of compiled code]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Compiled host code has CPU tensors only, and its random ops would draw from the CPU's
generator. The program's numbers, its seeds and the state that it saves are those of
xpu's generator. So xpu computes each random op of such a graph: see Note [Ops of xpu in
code for the host].

Inductor has fast random numbers of its own, from seeds that it draws once per call; the
op that draws the seeds is replaced as well. With `fallback_random` the numbers are equal
to those of eager xpu.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

import torch
from torch._ops import OpOverload

from xpurt.compiler import device_ops

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


@functools.cache
def found() -> frozenset[OpOverload]:
    """The ops, as PyTorch has them."""
    ops = set()
    for namespace, names in (("aten", ATEN), ("prims", _PRIMS)):
        for name in names:
            packet, _, overload = name.partition(".")
            packets = getattr(torch.ops, namespace)
            ops.add(getattr(getattr(packets, packet), overload))
    return frozenset(ops)


def define(define_for: Callable[[OpOverload], Any] = device_ops.define_for) -> None:
    """Defines the ops. A second call does nothing."""
    for op in found():
        define_for(op)


def replace(
    graph: torch.fx.GraphModule, of_host: Callable[[Any], Any] = device_ops.of_host
) -> None:
    """Replaces the random ops of a graph for the host. Inductor's passes before it know
    the ops of PyTorch."""
    for node in graph.graph.nodes:
        node.target = of_host(node.target)
        if device_ops.is_called(node.target):
            device_ops.call(node.target)
    graph.recompile()
