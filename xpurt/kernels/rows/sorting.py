"""Rows that sort lines, and ops that use sorted lines. NaN is larger than all numbers,
and equal elements keep their order."""

import torch

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Scratch, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import ARITHMETIC, NUMERIC

# A merge sort, bottom up: runs of 16 by insertion, then runs of twice the length each
# time. It moves the indices of the elements, between the second result and `spare`.
SORT = Step(
    over="self",
    along=("dim",),
    text="""
#define BEFORE(x, y) \\
  (descending ? x > y || (x != x && y == y) : x < y || (y != y && x == x))
#define ELEMENT(k) self_load(from + (k) * self_stride(d))
#define ORDER(k) (order + (k) * out1_stride(d))
#define SPARE(k) (spare + (k) * spare_stride(d))
  long at[8];
  const int d = wrapped(dim, self_RANK);
  const long from = self_line(i, dim, at), to = out0_line(i, dim, at);
  const long order = out1_line(i, dim, at), spare = spare_line(i, dim, at);
  const long n = self_size(d);
  for (long k = 0; k < n; ++k) {
    const C x = ELEMENT(k);
    long j = k;
    for (; j % 16 > 0; --j) {
      const long left = out1_load(ORDER(j - 1));
      const C y = ELEMENT(left);
      if (!(BEFORE(x, y))) break;
      out1_store(ORDER(j), left);
    }
    out1_store(ORDER(j), k);
  }
  int in_spare = 0;
  for (long width = 16; width < n; width *= 2) {
    for (long low = 0; low < n; low += 2 * width) {
      const long middle = min(low + width, n), high = min(low + 2 * width, n);
      long left = low, right = middle;
      for (long k = low; k < high; ++k) {
        const long first = min(left, n - 1), second = min(right, n - 1);
        const long one = in_spare ? spare_load(SPARE(first)) : out1_load(ORDER(first));
        const long two =
            in_spare ? spare_load(SPARE(second)) : out1_load(ORDER(second));
        int takes_right = left >= middle;
        if (!takes_right && right < high) {
          const C x = ELEMENT(two), y = ELEMENT(one);
          takes_right = BEFORE(x, y);
        }
        const long taken = takes_right ? two : one;
        right += takes_right;
        left += !takes_right;
        if (in_spare) {
          out1_store(ORDER(k), taken);
        } else {
          spare_store(SPARE(k), taken);
        }
      }
    }
    in_spare = !in_spare;
  }
  for (long k = 0; k < n; ++k) {
    const long taken = in_spare ? spare_load(SPARE(k)) : out1_load(ORDER(k));
    if (in_spare) out1_store(ORDER(k), taken);
    out0_store(to + k * out0_stride(d), ELEMENT(taken));
  }
""",
)

# A bisection; `sorter` has the order of a sequence that is itself not sorted.
SEARCH = Step(
    over="places",
    text="""
  long at[8], low = 0;
  const long to = places_unravel(i, at);
  const int d = sorted_sequence_RANK - 1;
  long high = sorted_sequence_size(d);
  const C x = self_load(self_at(at));
  while (low < high) {
    const long middle = low + (high - low) / 2;
    if (sorted_sequence_RANK > 0) at[d] = middle;
#if HAS_sorter
    at[d] = sorter_load(sorter_at(at));
    if (at[d] < 0 || at[d] >= sorted_sequence_size(d)) {
      FAULT;
      return;
    }
#endif
    const C y = sorted_sequence_load(sorted_sequence_at(at));
    const int after = right ? !(y > x) : !(y >= x);
    if (after) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  places_store(to, low);
""",
)

Pair = tuple[torch.Tensor, torch.Tensor]


def sort(self: torch.Tensor, dim: int, descending: bool = False) -> Pair:
    values, indices = torch.sort(self, dim=dim, descending=descending, stable=True)
    return values, indices


def kept(pair: Pair, dim: int, keepdim: bool) -> Pair:
    """`pair` without the dimension `dim` of size 1, unless `keepdim`."""
    if keepdim or pair[0].dim() == 0:
        return pair
    return pair[0].squeeze(dim), pair[1].squeeze(dim)


def checked(self: torch.Tensor, dim: int, name: str) -> int:
    """The size of `dim`. Raises IndexError if there is no such dimension, or if its
    size is 0."""
    rank = max(self.dim(), 1)
    if not -rank <= dim < rank:
        raise IndexError(
            "Dimension out of range (expected to be in range of "
            f"[{-rank}, {rank - 1}], but got {dim})"
        )
    size = self.shape[dim] if self.dim() else 1
    if size == 0:
        raise IndexError(f"{name}(): Expected reduction dim {dim} to have elements")
    return size


def topk(
    self: torch.Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> Pair:
    """Raises RuntimeError unless `k` is between 0 and the size of `dim`."""
    size = self.shape[dim] if self.dim() else 1
    if not 0 <= k <= size:
        raise RuntimeError("selected index k out of range")
    values, indices = sort(self, dim, largest)
    if self.dim() == 0:
        return values, indices  # one element, as on the CPU, even if k is 0
    return first_of(values, k, dim), first_of(indices, k, dim)


def first_of(values: torch.Tensor, k: int, dim: int) -> torch.Tensor:
    """The first `k` along `dim`, with the strides of a new tensor also if it is empty."""
    first = values.narrow(dim, 0, k)
    return first.contiguous() if first.numel() else first.new_empty(first.shape)


def kthvalue(self: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    """Raises RuntimeError unless `k` is between 1 and the size of `dim`."""
    if not 1 <= k <= checked(self, dim, "kthvalue"):
        raise RuntimeError("selected number k out of range for dimension")
    values, indices = sort(self, dim)
    if self.dim() == 0:
        return values, indices
    pair = values.narrow(dim, k - 1, 1).clone(), indices.narrow(dim, k - 1, 1).clone()
    return kept(pair, dim, keepdim)


def median_along(self: torch.Tensor, dim: int, keepdim: bool, skip_nan: bool) -> Pair:
    """The lower of the two elements in the middle. In a line with NaN the result is the
    first NaN; with `skip_nan` it is the median of the numbers."""
    size = checked(self, dim, "median")
    values, indices = sort(self, dim)
    if self.dim() == 0:
        return values, indices
    if not self.is_floating_point():
        middle = indices.new_full((), (size - 1) // 2)
        place = middle.expand(self.select(dim, 0).shape).unsqueeze(dim)
    else:
        missing = (values != values).sum(dim, keepdim=True)
        if skip_nan:
            place = ((size - 1 - missing) // 2).clamp_(min=0)
        else:
            place = torch.where(missing > 0, size - missing, (size - 1) // 2)
    return kept((values.gather(dim, place), indices.gather(dim, place)), dim, keepdim)


def median_dim(self: torch.Tensor, dim: int, keepdim: bool = False) -> Pair:
    return median_along(self, dim, keepdim, skip_nan=False)


def nanmedian_dim(self: torch.Tensor, dim: int, keepdim: bool = False) -> Pair:
    return median_along(self, dim, keepdim, skip_nan=True)


def median(self: torch.Tensor) -> torch.Tensor:
    return median_of_all(self, skip_nan=False)


def nanmedian(self: torch.Tensor) -> torch.Tensor:
    return median_of_all(self, skip_nan=True)


def median_of_all(self: torch.Tensor, skip_nan: bool) -> torch.Tensor:
    if self.numel() == 0:
        none = float("nan") if self.is_floating_point() else -(2**63)
        return self.new_full((), none)
    return median_along(self.reshape(-1), 0, False, skip_nan)[0]


def mode(self: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """The most frequent element (the least of several), and its last index."""
    size = checked(self, dim, "mode")
    values, indices = sort(self, dim)
    if self.dim() == 0:
        return values, indices
    place = torch.arange(size, device=self.device)
    shape = [1] * self.dim()
    shape[dim] = size
    place = place.view(shape).expand(self.shape)
    begins = torch.ones(self.shape, dtype=torch.bool, device=self.device)
    same = values.narrow(dim, 1, size - 1) != values.narrow(dim, 0, size - 1)
    begins.narrow(dim, 1, size - 1).copy_(same)
    first = torch.where(begins, place, 0).cummax(dim)[0]
    last = (place - first).argmax(dim, keepdim=True)
    return kept((values.gather(dim, last), indices.gather(dim, last)), dim, keepdim)


def searchsorted(
    sorted_sequence: torch.Tensor,
    self: torch.Tensor | float,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: torch.Tensor | None = None,
) -> torch.Tensor:
    """The search in the common type of the sequence and the values. Raises RuntimeError
    for shapes that do not fit."""
    dtype = torch.result_type(sorted_sequence, self)
    if not isinstance(self, torch.Tensor):
        self = sorted_sequence.new_full((), self, dtype=dtype)
    how = {"right": right, "side": side, "sorter": sorter}
    _C.meta_results("aten::searchsorted", "Tensor", sorted_sequence, self, **how)
    if dtype.is_complex or dtype == torch.bool:
        raise NotImplementedError("there is no order")
    places = torch.empty(
        self.shape, dtype=torch.int32 if out_int32 else torch.int64, device=self.device
    )
    torch.ops.xpurt.searchsorted(
        sorted_sequence.to(dtype),
        self.to(dtype),
        places,
        right=right or side == "right",
        sorter=sorter,
    )
    return places


def bucketize(
    self: torch.Tensor | float,
    boundaries: torch.Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> torch.Tensor:
    """Raises RuntimeError unless `boundaries` is a vector."""
    if boundaries.dim() != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})"
        )
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


ALONG = ("dim", "dim_values")

ROWS = (
    CustomKernel(
        "sort",
        (SORT,),
        ARITHMETIC,
        overloads=("stable", "values_stable"),
        scratch=(Scratch("spare", "self", integral=True),),
        flops=100,
    ),
    CustomKernel(
        "xpurt::searchsorted",
        (SEARCH,),
        NUMERIC,
        schema="(Tensor sorted_sequence, Tensor self, Tensor(a!) places, *, bool right, "
        "Tensor? sorter) -> ()",
    ),
    Decomposed("searchsorted", searchsorted),
    Decomposed("bucketize", bucketize),
    Decomposed("topk", topk),
    Decomposed("kthvalue", kthvalue),
    Decomposed("median", median_dim, overloads=ALONG),
    Decomposed("median", median, overloads=("",)),
    Decomposed("nanmedian", nanmedian_dim, overloads=ALONG),
    Decomposed("nanmedian", nanmedian, overloads=("",)),
    Decomposed("mode", mode),
    Decomposed("isin"),
)
