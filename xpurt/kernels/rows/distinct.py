"""Rows that find the distinct elements, and count the occurrences of each."""

import torch

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.rows.counting import true_places

Found = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def runs(begins: torch.Tensor, inverse: bool, counts: bool) -> Found:
    """The positions where `begins` is true, which are the beginnings of runs; the
    number of the run for each position, if `inverse`; and the length of each run, if
    `counts`. Results that are not requested are empty."""
    places = true_places(begins)
    none = places.new_empty(0)
    number = begins.cumsum(0) - 1 if inverse else none
    if not counts:
        return places, number, none
    ends = torch.cat([places[1:], places.new_full((1,), begins.numel())])
    return places, number, ends[: places.numel()] - places


def changes(rows: torch.Tensor) -> torch.Tensor:
    """Whether each row (for a vector, each element) differs from the one before."""
    first = torch.ones(min(rows.shape[0], 1), dtype=torch.bool, device=rows.device)
    differ = rows[1:] != rows[:-1]
    if rows.dim() > 1:
        differ = differ.any(1)
    return torch.cat([first, differ])


def unique_consecutive(
    self: torch.Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Found:
    rows = self.reshape(-1)
    if dim is not None and self.dim() > 0:
        rows = self.movedim(dim, 0).reshape(self.shape[dim], -1)
    places, number, counts = runs(changes(rows), return_inverse, return_counts)
    if dim is not None and self.dim() > 0:
        return taken(self, dim, rows, places), number, counts
    number = number.view(self.shape) if return_inverse else number
    return rows.index_select(0, places), number, counts


def taken(
    self: torch.Tensor, dim: int, rows: torch.Tensor, places: torch.Tensor
) -> torch.Tensor:
    """Some `rows` at `places`, which are slices of `self` along `dim`, as slices
    again."""
    shape = self.movedim(dim, 0).shape[1:]
    return rows.index_select(0, places).view(places.numel(), *shape).movedim(0, dim)


def back(order: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    """The numbers of sorted elements, in the order before the sort."""
    return torch.empty_like(number).scatter_(0, order, number)


def unique(
    self: torch.Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Found:
    """The distinct elements. They are sorted whatever `sorted` is."""
    values, order = torch.sort(self.reshape(-1), stable=True)
    places, number, counts = runs(changes(values), return_inverse, return_counts)
    if return_inverse:
        number = back(order, number).view(self.shape)
    return values.index_select(0, places), number, counts


def unique_and_inverse(
    self: torch.Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    return unique(self, sorted, return_inverse)[:2]


def unique_dim(
    self: torch.Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Found:
    """The distinct slices along `dim`, sorted. Rows are sorted by their last element
    first, then by each one before: every sort keeps the order of the previous one.
    Raises RuntimeError if there are rows, but no elements."""
    if self.numel() == 0 and self.shape[dim] != 0:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot "
            "be applied"
        )
    rows = self.movedim(dim, 0).reshape(self.shape[dim], -1 if self.numel() else 0)
    order = torch.arange(rows.shape[0], device=self.device)
    for column in reversed(range(rows.shape[1])):
        keys = rows.select(1, column).index_select(0, order)
        order = order.index_select(0, torch.sort(keys, stable=True)[1])
    rows = rows.index_select(0, order)
    places, number, counts = runs(changes(rows), return_inverse, return_counts)
    if return_inverse:
        number = back(order, number)
    return taken(self, dim, rows, places), number, counts


def bincount(
    self: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0
) -> torch.Tensor:
    """The count of each value, or the sum of its weights. Raises RuntimeError unless
    `self` is a vector of integers >= 0, and the weights have its size."""
    integral = not (self.is_floating_point() or self.is_complex())
    if self.dim() != 1 or not integral or self.dtype == torch.bool:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights.shape != self.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = torch.int64
    if weights is not None:
        dtype = torch.float32 if weights.dtype == torch.float32 else torch.float64
    if self.numel() == 0:
        return torch.zeros(minlength, dtype=torch.int64, device=self.device)
    least, most = (int(x) for x in torch.stack(self.long().aminmax()).tolist())
    if least < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    counts = torch.zeros(max(most + 1, minlength), dtype=dtype, device=self.device)
    each = torch.ones_like(self, dtype=dtype) if weights is None else weights.to(dtype)
    return counts.scatter_add_(0, self.long(), each)


def histc(
    self: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0
) -> torch.Tensor:
    """Raises RuntimeError if `bins` is not positive, or if `min` and `max` are not
    finite or not in order."""
    if self.dtype == torch.bool or self.is_complex():
        return torch.histc(self, bins, min, max)  # PyTorch refuses it
    if bins <= 0:
        raise RuntimeError("bins must be > 0")
    if min == max and self.numel() > 0:
        min, max = torch.stack(self.aminmax()).tolist()
    if min == max:
        min, max = min - 1, max + 1
    if not (abs(min) < float("inf") and abs(max) < float("inf")):
        raise RuntimeError(f"range of [{min}, {max}] is not finite")
    if min > max:
        raise RuntimeError("max must be larger than min")
    x = self.reshape(-1)
    if not self.is_floating_point():
        # Integers between integral bounds are counted exactly.
        whole = int(min) == min and int(max) == max
        x = x.to(torch.int64 if whole else torch.float64)
        min, max = (int(min), int(max)) if whole else (min, max)
    within = (x >= min) & (x <= max)
    if x.is_floating_point():
        span = x.new_tensor(max) - x.new_tensor(min)  # rounded like the elements
        place = (x - min) * bins / span
    else:
        place = (x - min) * bins // (max - min)
    place = torch.where(within, place.clamp(0, bins - 1), 0).long()
    counts = torch.zeros(bins, dtype=self.dtype, device=self.device)
    return counts.scatter_add_(0, place, within.to(self.dtype))


ROWS = (
    Decomposed("_unique", unique_and_inverse),
    Decomposed("_unique2", unique),
    Decomposed("unique_consecutive", unique_consecutive),
    Decomposed("unique_dim", unique_dim),
    Decomposed("bincount", bincount),
    Decomposed("histc", histc),
)
