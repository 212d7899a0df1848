"""Copies of a sample's inputs on another device: tensors, generators, devices."""

from typing import Any, TypeVar

import torch
from torch.utils._pytree import tree_map

from xpurt.testing import copied

T = TypeVar("T")


def moved(tree: T, device: torch.device) -> T:
    """A copy of `tree` on `device`: tensors, generators, and the device "cpu" itself.

    Tensors keep their strides, and the storages that they share. A generator becomes a
    new one with the seed of the old one.
    """

    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.device) and leaf.type == "cpu":
            return device
        if isinstance(leaf, str) and leaf == "cpu":
            return str(device)
        if isinstance(leaf, torch.Generator):
            return torch.Generator(device).manual_seed(leaf.initial_seed())
        return leaf

    there: T = tree_map(move, copied(tree, device))
    return there


def described(tree: Any, longest: int = 300) -> str:
    """`tree` as a short text: a tensor by dtype, shape and, if they matter, strides."""

    def short(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        dtype = str(leaf.dtype).removeprefix("torch.")
        shape = "x".join(map(str, leaf.shape)) or "()"
        if leaf.layout is not torch.strided:
            return _Bare(f"{dtype}[{shape} {str(leaf.layout).removeprefix('torch.')}]")
        strides = "" if leaf.is_contiguous() else f" strides {tuple(leaf.stride())}"
        return _Bare(f"{dtype}[{shape}{strides}]")

    text = repr(tree_map(short, tree))
    return text if len(text) <= longest else text[: longest - 3] + "..."


class _Bare(str):
    """A string whose repr has no quotes."""

    def __repr__(self) -> str:
        return str(self)
