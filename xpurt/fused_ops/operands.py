"""Checks of operands: an error names the op, what fits, and what was found."""

import torch
from torch import Tensor


def sizes(tensor: Tensor) -> str:
    return str(list(tensor.shape))


def require_floating(op: str, name: str, tensor: Tensor) -> None:
    """Raises TypeError for a tensor of integers, bools or complex numbers."""
    if not tensor.is_floating_point():
        raise TypeError(
            f"{op} computes with floating-point tensors; found `{name}` of {tensor.dtype}."
            f" Convert it, as in {name}.float()"
        )


def require_same_type(op: str, **tensors: Tensor | None) -> None:
    """Raises TypeError unless all tensors that are given have one type."""
    given = {name: each for name, each in tensors.items() if each is not None}
    if len({each.dtype for each in given.values()}) > 1:
        found = ", ".join(f"`{name}` of {each.dtype}" for name, each in given.items())
        raise TypeError(f"{op} has operands of one type; found {found}. Convert them")


def require_same_device(op: str, **tensors: Tensor | None) -> None:
    """Raises ValueError unless all tensors that are given are on one device."""
    given = {name: each for name, each in tensors.items() if each is not None}
    if len({each.device for each in given.values()}) > 1:
        found = ", ".join(f"`{name}` on {each.device}" for name, each in given.items())
        raise ValueError(f"{op} has operands on one device; found {found}. Move them")


def require(holds: bool, text: str) -> None:
    """Raises ValueError with the text unless `holds`."""
    if not holds:
        raise ValueError(text)


def as_matrix(tensor: Tensor) -> Tensor:
    """(..., n) as (lines, n); a view if the strides allow it."""
    return tensor.flatten(0, -2) if tensor.dim() > 1 else tensor.unsqueeze(0)


def with_adjacent_elements(tensor: Tensor) -> Tensor:
    """The tensor, or a copy if its last dimension has another stride than 1."""
    apart = tensor.shape[-1] > 1 and tensor.stride(-1) != 1
    return tensor.contiguous() if apart else tensor


def computed_in(dtype: torch.dtype) -> torch.dtype:
    """The type of norms and sums: float64 stays, others are computed in float32."""
    return dtype if dtype == torch.float64 else torch.float32
