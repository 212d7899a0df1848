"""The distance of results from the right ones, in representable numbers between."""

import torch

BITS = {
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
    torch.float32: torch.int32,
    torch.float64: torch.int64,
}


def _ordered(values: torch.Tensor) -> torch.Tensor:
    """Integers in the order of the numbers, one for each; both zeros are 0."""
    bits = values.contiguous().view(BITS[values.dtype])
    low = torch.iinfo(bits.dtype).min
    return torch.where(bits < 0, low - bits.long(), bits.long())


def same_bits(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Whether they are the same number, or both NaN."""
    kind = BITS[a.dtype]
    return (a.view(kind) == b.view(kind)) | (a.isnan() & b.isnan())


def distance(
    actual: torch.Tensor, exact: torch.Tensor, scale: torch.Tensor | float = 0.0
) -> torch.Tensor:
    """Numbers of actual's type between it and `exact` rounded to it: 1 for neighbours,
    infinity if one of both is NaN. Below `scale` numbers count as far apart as at it."""
    target = exact.to(actual.dtype)
    mine, right = _ordered(actual), _ordered(target)
    # The difference of far ones does not fit into 64 bits.
    rough = (mine.double() - right.double()).abs()
    found = torch.where(rough < 2.0**60, (mine - right).abs().double(), rough)
    size = torch.as_tensor(scale, dtype=torch.double).expand_as(found)
    at_scale = size.to(actual.dtype)
    step = _step(at_scale)
    by_scale = (actual.double() - exact.double()).abs() / step
    counted = (size > 0) & step.isfinite() & by_scale.isfinite()
    found = torch.where(counted, torch.minimum(found, by_scale), found)
    neither = actual.isnan() & target.isnan()
    found = torch.where(actual.isnan() ^ target.isnan(), torch.inf, found)
    return torch.where(neither, 0.0, found)


def _step(values: torch.Tensor) -> torch.Tensor:
    """The distance from each to the next larger number."""
    bits = values.abs().contiguous().view(BITS[values.dtype])
    return (bits + 1).view(values.dtype).double() - values.abs().double()


def kind_differs(actual: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Whether one is NaN or infinite and the other is not, or zeros have two signs."""
    nan = actual.isnan() != other.isnan()
    infinite = (actual.isinf() | other.isinf()) & (actual != other) & ~nan
    infinite &= ~actual.isnan()
    zero = (actual == 0) & (other == 0) & (actual.signbit() != other.signbit())
    return nan | infinite | zero
