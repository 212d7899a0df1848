"""Rows whose result sizes depend on the values of the operands. The size is read
first, which waits for the device."""

import torch

from xpurt.kernels.kinds.decomposed import Decomposed


def true_places(flags: torch.Tensor) -> torch.Tensor:
    """Positions, in row-major order, of the elements that are not 0."""
    flags = flags.reshape(-1) != 0
    if flags.numel() == 0:
        return flags.new_empty(0, dtype=torch.int64)
    # The number of true elements before each one is its position in the result. All
    # other elements go to one position behind the last.
    counted = flags.cumsum(0)
    count = int(counted[-1])
    target = torch.where(flags, counted - 1, count)
    places = torch.arange(flags.numel(), device=flags.device)
    return places.new_empty(count + 1).scatter_(0, target, places)[:count]


def nonzero(self: torch.Tensor) -> torch.Tensor:
    """The indices of the elements that are not 0, one row each."""
    places = true_places(self)
    count = places.numel()
    # A column after the other, also in the strides of a result without rows.
    shape = (count, self.dim())
    if count == 0:
        return places.new_empty_strided(shape, (1, 0))
    found = places.new_empty_strided(shape, (1, count))
    below = self.numel()
    for d, size in enumerate(self.shape):
        below //= size
        found.select(1, d).copy_(places // below % size)
    return found


def nonzero_static(
    self: torch.Tensor, *, size: int, fill_value: int = -1
) -> torch.Tensor:
    """The first `size` indices; the remaining rows are `fill_value`.

    Raises RuntimeError if `size` is negative."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: size {size} is negative")
    found = nonzero(self)[:size]
    fixed = found.new_full((size, self.dim()), fill_value)
    fixed[: found.shape[0]].copy_(found)
    return fixed


def together(self: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
    """Both tensors in the shape to which they broadcast."""
    both: list[torch.Tensor] = torch.ops.aten.broadcast_tensors.default([self, mask])
    return both


def masked_select(self: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The elements where `mask` is true. Raises RuntimeError if the mask is not
    bool."""
    if mask.dtype != torch.bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    self, mask = together(self, mask)
    return self.reshape(-1).index_select(0, true_places(mask))


def masked_scatter(
    self: torch.Tensor, mask: torch.Tensor, source: torch.Tensor
) -> torch.Tensor:
    """`self` with elements of `source`, in order, where `mask` is true. Raises
    RuntimeError if the source has too few elements or another type."""
    if mask.dtype != torch.bool:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, "
            f"but got mask with dtype {mask.dtype}"
        )
    if self.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{self.dtype} and {source.dtype}"
        )
    self, mask = together(self, mask)
    if mask.numel() == 0:
        return self.clone()
    counted = mask.reshape(-1).cumsum(0)
    if int(counted[-1]) > source.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")
    if source.numel() == 0:
        return self.clone()
    chosen = source.reshape(-1).index_select(0, (counted - 1).clamp_(min=0))
    return torch.where(mask, chosen.view(mask.shape), self)


def equal(self: torch.Tensor, other: torch.Tensor) -> bool:
    """True if shapes and values, in the common type, agree."""
    return self.shape == other.shape and bool((self == other).all())


ROWS = (
    Decomposed("equal", equal),
    Decomposed("nonzero", nonzero),
    Decomposed("nonzero_static", nonzero_static),
    Decomposed("masked_select", masked_select),
    Decomposed("masked_scatter", masked_scatter),
)
