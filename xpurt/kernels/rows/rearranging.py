"""Rows that move elements, or leave some of them out."""

from collections.abc import Sequence

import torch

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY, MOVING

ROLL = Step(
    over="out",
    text="""
  long at[8];
  const long to = out_unravel(i, at);
#if dims_COUNT
  for (int k = 0; k < dims_COUNT; ++k) {
    const int d = wrapped(dims[k], self_RANK);
    const long n = self_size(d), from = (at[d] - shifts[k]) % n;
    at[d] = from < 0 ? from + n : from;
  }
  out_store(to, self_load(self_at(at)));
#else
  const long n = self_numel, from = (i - shifts[0]) % n;
  out_store(to, self_load(self_unravel(from < 0 ? from + n : from, at)));
#endif
""",
)

FLIP = Step(
    over="out",
    text="""
  long at[8];
  const long to = out_unravel(i, at);
#if dims_COUNT
  for (int k = 0; k < dims_COUNT; ++k) {
    const int d = wrapped(dims[k], self_RANK);
    at[d] = self_size(d) - 1 - at[d];
  }
#endif
  out_store(to, self_load(self_at(at)));
""",
)


def triangle(kept: str) -> tuple[Step]:
    return (
        Step(
            over="out",
            text=f"""
  long at[8];
  const long to = out_unravel(i, at);
  const long right = at[out_RANK - 1] - at[out_RANK - 2];
  out_store(to, right {kept} diagonal ? self_load(self_at(at)) : (C)0);
""",
        ),
    )


# Adds up the windows that contain an element. The gradient's last dimension is the
# position within a window.
UNFOLD_BACKWARD = Step(
    over="out",
    text="""
  long at[9] = {0};
  const long to = out_unravel(i, at);
  const int d = wrapped(dim, out_RANK);
  const long x = out_RANK ? at[d] : 0, windows = grad_in_RANK > 1 ? grad_in_size(d) : 1;
  long first = x < size ? 0 : (x - size) / a.arg_step + 1;
  C sum = 0;
  for (long k = first; k < windows && k * a.arg_step <= x; ++k) {
    if (grad_in_RANK > 1) at[d] = k;
    at[grad_in_RANK - 1] = x - k * a.arg_step;
    sum += grad_in_load(grad_in_at(at));
  }
  out_store(to, sum);
""",
)


def cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> torch.Tensor:
    """Raises PyTorch's error for tensors that do not fit."""
    for position, each in enumerate(tensors):
        if each.dim() == 0:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {position}) cannot be "
                "concatenated"
            )
    (like,) = _C.meta_results("aten::cat", "", tensors, dim)
    joined = torch.empty_strided(
        like.shape, like.stride(), dtype=like.dtype, device=tensors[0].device
    )
    begin = 0
    for each in tensors:
        if each.dim() == 1 and each.numel() == 0:
            continue  # fits tensors of any rank
        length = each.shape[dim]
        joined.narrow(dim, begin, length).copy_(each)
        begin += length
    return joined


def stack(tensors: Sequence[torch.Tensor], dim: int = 0) -> torch.Tensor:
    """Raises RuntimeError for tensors of different sizes."""
    first = tensors[0].shape
    for position, each in enumerate(tensors):
        if each.shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at "
                f"entry 0 and {list(each.shape)} at entry {position}"
            )
    parts = [each.unsqueeze(dim) for each in tensors]
    (like,) = _C.meta_results("aten::cat", "", parts, dim)
    stacked = torch.empty(like.shape, dtype=like.dtype, device=tensors[0].device)
    for index, each in enumerate(tensors):
        stacked.select(dim, index).copy_(each)
    return stacked


def repeat_interleave(
    repeats: torch.Tensor, *, output_size: int | None = None
) -> torch.Tensor:
    """Each position of `repeats`, repeated as often as its element. Raises RuntimeError
    unless `repeats` is a vector of int32 or int64, without negative elements."""
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype not in (torch.int32, torch.int64):
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats.numel() == 0:
        return torch.empty_like(repeats)
    if bool((repeats < 0).any()):
        raise RuntimeError("repeats can not be negative")
    ends = repeats.cumsum(0)
    total = int(ends[-1])
    if output_size is not None and output_size != total:
        raise RuntimeError("allocated size does not match required size")
    each = torch.arange(total, device=repeats.device)
    return torch.searchsorted(ends, each, right=True).to(repeats.dtype)


ROWS = (
    CustomKernel("roll", (ROLL,), MOVING),
    CustomKernel("flip", (FLIP,), MOVING),
    CustomKernel("tril", triangle("<="), MOVING),
    CustomKernel("triu", triangle(">="), MOVING),
    CustomKernel("unfold_backward", (UNFOLD_BACKWARD,), FLOATING_ONLY),
    Decomposed("cat", cat, converts=True),
    Decomposed("_stack", stack),
    Decomposed("repeat_interleave", repeat_interleave, overloads=("Tensor",)),
)
