"""Operands without elements: each dimension of each operand 0 in turn, and dimensions
that belong together 0 at once; forward and backward."""

from collections.abc import Iterator
from typing import Any

import torch

from xpurt_tools.conformance.check_op import Inputs, OpCheck
from xpurt_tools.conformance.sweeps.of_ops import OfOps, operands, with_leaves

# For each operand that changes, by position: the dimensions that become 0.
Emptied = dict[int, tuple[int, ...]]


class Empties(OfOps):
    def check_sample(self, check: OpCheck, index: int, sample: Any) -> None:
        for variant, inputs in emptied_calls(check.inputs(sample)):
            check.call(index, sample, inputs, variant)


def emptied_calls(inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """A sample's inputs with empty operands, and a name: "0.dim1+2.dim0" for the second
    dimension of the first leaf, together with the first one of the third leaf."""
    tensors = operands(inputs)
    seen = set()
    for emptied in _choices(tensors):
        variant = "+".join(
            f"{position}.dim{dim}"
            for position, dims in sorted(emptied.items())
            for dim in dims
        )
        if variant and variant not in seen:
            seen.add(variant)
            changes = {
                position: _emptied(tensors[position], dims)
                for position, dims in emptied.items()
            }
            yield variant, with_leaves(inputs, changes)


def _choices(tensors: dict[int, torch.Tensor]) -> Iterator[Emptied]:
    for position, tensor in tensors.items():
        for dim in range(tensor.dim()):
            yield {position: (dim,)}
    # Dimensions of the same length, of all operands: the rows of a matrix and of a bias.
    lengths = {length for tensor in tensors.values() for length in tensor.shape}
    for length in sorted(lengths):
        yield _where(tensors, lambda t, dim, length=length: t.shape[dim] == length)
    # The same place from the left, as batches, and from the right, as in broadcasting.
    ranks = range(max((tensor.dim() for tensor in tensors.values()), default=0))
    for place in ranks:
        yield _where(tensors, lambda t, dim, place=place: dim == place)
        yield _where(tensors, lambda t, dim, place=place: dim == t.dim() - 1 - place)
    yield _where(tensors, lambda t, dim: True)


def _where(tensors: dict[int, torch.Tensor], chosen: Any) -> Emptied:
    found = {
        position: tuple(dim for dim in range(tensor.dim()) if chosen(tensor, dim))
        for position, tensor in tensors.items()
    }
    return {position: dims for position, dims in found.items() if dims}


def _emptied(tensor: torch.Tensor, dims: tuple[int, ...]) -> torch.Tensor:
    shape = [0 if dim in dims else length for dim, length in enumerate(tensor.shape)]
    return torch.empty(shape, dtype=tensor.dtype).requires_grad_(tensor.requires_grad)
