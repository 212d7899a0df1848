"""A second judge of a result: the CPU in a wider type.

Where an op rounds, and in which order it adds, is its device's own choice: two right
results differ by more than a tolerance where terms cancel, or where a rounded coordinate
chooses another pixel. The CPU's result in its own type is then no better a measure than
the one on xpu; its result in the next wider type, rounded once, is.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from xpurt.testing import outcome

T = TypeVar("T")

WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def in_wider_type(inputs: T, body: Callable[[T], Any], like: Any) -> Any:
    """The result of `body` on `inputs` in the next wider type, each tensor of it in the
    type that it has in `like`; None if the op has no such result."""
    wide: dict[int, torch.Tensor] = {}

    def widened(leaf: Any) -> Any:
        if isinstance(leaf, torch.dtype):
            return WIDER.get(leaf, leaf)
        if not isinstance(leaf, torch.Tensor) or leaf.dtype not in WIDER:
            return leaf
        if id(leaf) not in wide:
            copy = leaf.detach().to(WIDER[leaf.dtype])
            wide[id(leaf)] = copy.requires_grad_(leaf.requires_grad)
        return wide[id(leaf)]

    torch.manual_seed(0)
    result, error = outcome(body, tree_map(widened, inputs))
    if error is not None or not wide:
        return None
    leaves, form = tree_flatten(result)
    wanted, form_wanted = tree_flatten(like)
    if form != form_wanted:
        return None
    return tree_unflatten(
        [_narrowed(leaf, other) for leaf, other in zip(leaves, wanted, strict=True)],
        form,
    )


def _narrowed(leaf: Any, like: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or not isinstance(like, torch.Tensor):
        return leaf
    narrow = leaf.detach().to(like.dtype)
    return narrow.requires_grad_() if like.requires_grad else narrow
