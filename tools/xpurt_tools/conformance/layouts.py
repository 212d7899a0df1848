"""The same numbers in other layouts: inputs, and gradients.

A kernel that relies on a layout is right until it gets a permuted, an expanded or a
channels_last tensor. Of a pair's samples, the first of each rank is run with all
layouts.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from xpurt_tools.conformance.gradients import drawn
from xpurt_tools.conformance.tested_device import is_of_earlier_work
from xpurt_tools.conformance.tiers import Tiers

Relayout = Callable[[torch.Tensor], torch.Tensor]


def permuted(tensor: torch.Tensor) -> torch.Tensor:
    """Dense, with the dimensions in reverse order in memory."""
    if tensor.dim() < 2:
        return tensor
    order = list(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


def with_gaps(tensor: torch.Tensor) -> torch.Tensor:
    """At every other element of its memory, from the second one on."""
    if tensor.dim() == 0:
        return tensor
    apart = tensor.new_zeros((*tensor.shape, 2))
    apart.select(-1, 1).copy_(tensor)
    return apart.select(-1, 1)


def channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """channels_last for images and volumes; other tensors are returned as they are."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if tensor.dim() not in formats:
        return tensor
    return tensor.contiguous(memory_format=formats[tensor.dim()])


def expanded(tensor: torch.Tensor) -> torch.Tensor:
    """Its first element everywhere, stride 0: as the gradient of a sum."""
    if tensor.numel() == 0:
        return tensor
    return tensor.flatten()[0].expand(tensor.shape)


def expanded_along_first(tensor: torch.Tensor) -> torch.Tensor:
    """Its first slice repeated along the first dimension, with stride 0."""
    if tensor.dim() == 0 or tensor.numel() == 0:
        return tensor
    return tensor[:1].clone().expand(tensor.shape)


OF_INPUTS: Mapping[str, Relayout] = {
    "permuted": permuted,
    "channels_last": channels_last,
    "expanded": expanded_along_first,
}
OF_GRADIENTS: Mapping[str, Relayout] = {
    "permuted": permuted,
    "with gaps": with_gaps,
    "channels_last": channels_last,
    "expanded": expanded,
    "expanded along the first dimension": expanded_along_first,
}


# If the inputs have other layouts, too, these are enough.
OF_GRADIENTS_OF_SUCH_INPUTS: Mapping[str, Relayout] = {
    name: OF_GRADIENTS[name] for name in ("channels_last", "expanded")
}


class NewRanks:
    """The samples of a pair that are run in other layouts: the first of each rank."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def has(self, tree: Any) -> bool:
        """Whether the largest rank of a tensor in `tree` is new among the samples."""
        rank = max(
            (
                leaf.dim()
                for leaf in tree_leaves(tree)
                if isinstance(leaf, torch.Tensor)
            ),
            default=0,
        )
        new = rank > 0 and rank not in self._seen
        self._seen.add(rank)
        return new


def laid_out(tree: Any, layout: Relayout) -> Any | None:
    """`tree` with its tensors in another layout, as leaves of autograd; None if no
    tensor changes. A tensor that occurs twice remains one tensor."""
    made: dict[int, torch.Tensor] = {}
    changed = False

    def change(leaf: Any) -> Any:
        nonlocal changed
        if not isinstance(leaf, torch.Tensor) or not _is_plain(leaf):
            return leaf
        if id(leaf) not in made:
            tensor = layout(leaf.detach())
            changed |= tensor.stride() != leaf.stride()
            made[id(leaf)] = tensor.requires_grad_(leaf.requires_grad)
        return made[id(leaf)]

    there = tree_map(change, tree)
    return there if changed else None


def of_inputs(tree: Any) -> Iterator[tuple[str, Any]]:
    """A sample's inputs in each layout that changes them, with the layout's name."""
    for name, layout in OF_INPUTS.items():
        inputs = laid_out(tree, layout)
        if inputs is not None:
            yield name, inputs


def gradients_by_layout(
    results: list[torch.Tensor],
    inputs: list[torch.Tensor],
    tiers: Tiers,
    layouts: Mapping[str, Relayout],
) -> dict[str, Any]:
    """The gradients of `inputs` through one graph, once for each layout of the gradient
    that is sent, or the name of the exception that was raised."""
    found: dict[str, Any] = {}
    if not results or not inputs or not all(map(_is_plain, results)):
        return found
    for name, layout in layouts.items():
        with tiers.unseen():
            draw = torch.Generator().manual_seed(0)
            given = [drawn(result, draw) for result in results]
            sent = [layout(each) for each in given]
        if _strides(sent) == _strides(given):
            continue
        try:
            arrived = torch.autograd.grad(
                results, inputs, sent, allow_unused=True, retain_graph=True
            )
        except Exception as error:
            if is_of_earlier_work(error):
                raise
            found[name] = f"raised {type(error).__name__}"
            continue
        with tiers.unseen():
            found[name] = values_alone(arrived)
    return found


def values_alone(tree: Any) -> Any:
    """`tree` with its tensors contiguous: the strides of a gradient may depend on the
    algorithm."""

    def copy(leaf: Any) -> Any:
        plain = isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
        return leaf.contiguous() if plain and not leaf.is_nested else leaf

    return tree_map(copy, tree)


def _strides(tensors: list[torch.Tensor]) -> list[tuple[int, ...]]:
    return [tensor.stride() for tensor in tensors]


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether it has sizes and strides, and its memory holds its values."""
    return (
        tensor.layout is torch.strided
        and not tensor.is_nested
        and not tensor.is_quantized
        and not tensor.is_meta
        and not tensor.is_conj()
        and not tensor.is_neg()
    )
