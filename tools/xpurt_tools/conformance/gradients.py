"""The backward pass of a trial: the same gradients through each device's graph."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from xpurt_tools.conformance.tested_device import is_of_earlier_work
from xpurt_tools.conformance.tiers import Tiers


def differentiable(tree: Any) -> list[torch.Tensor]:
    """The tensors of `tree` that have a graph."""
    return [
        leaf
        for leaf in tree_leaves(tree)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.grad_fn
    ]


def leaves_that_require_grad(tree: Any) -> list[torch.Tensor]:
    return [
        leaf
        for leaf in tree_leaves(tree)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.is_leaf
    ]


def gradients(
    results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], tiers: Tiers
) -> Any:
    """The gradients of `inputs`, or the name of the exception that the backward raised.

    An op without a backward raises on the CPU as well; its forward is still compared.
    An error of earlier work, which the forward submitted, is raised.
    """
    if not results or not inputs:
        return []
    with tiers.unseen():
        draw = torch.Generator().manual_seed(0)
        sent = [drawn(result, draw) for result in results]
    try:
        return torch.autograd.grad(results, inputs, sent, allow_unused=True)
    except Exception as error:
        if is_of_earlier_work(error):
            raise
        return f"raised {type(error).__name__}"


def drawn(result: torch.Tensor, draw: torch.Generator) -> torch.Tensor:
    """A gradient for `result`: the same numbers on each device."""
    dtype = torch.complex64 if result.dtype.is_complex else torch.float32
    values = torch.randn(result.shape, generator=draw, dtype=dtype)
    # Numbers that every type can represent, so that a wider type gets the same ones.
    parts = torch.view_as_real(values) if dtype.is_complex else values
    parts.mul_(16).round_().div_(16)
    values = values.to(result.dtype)
    if result.layout is not torch.strided:
        values = values.to_sparse(layout=result.layout)
    return values.to(result.device)
