"""Rows of unpooling: they put elements back to the positions of the maxima."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import NUMERIC

ZERO = Step(
    over="out",
    text="""
  long index[8];
  out_store(out_unravel(i, index), 0);
""",
)

# If several elements have one position, it is unspecified which of them it gets.
PUT_BACK = Step(
    over="self",
    text="""
  long index[8];
  const C x = self_load(self_unravel(i, index));
  long rest = indices_load(indices_at(index));
  if (rest < 0) {
    FAULT;
    return;
  }
  for (int d = self_RANK - 1; d >= self_RANK - axes; --d) {
    index[d] = rest % out_size(d);
    rest /= out_size(d);
  }
  if (rest > 0) {
    FAULT;
    return;
  }
  out_store(out_at(index), x);
""",
)


def unpool2d(self: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    """Raises RuntimeError for shapes that do not fit."""
    if self.numel() == 0 or 0 in output_size:
        return torch.ops.aten.max_unpool2d(self, indices, output_size)  # type: ignore[no-any-return]
    (made,) = _C.meta_results("aten::max_unpool2d", "", self, indices, output_size)
    out = torch.empty(
        made.shape,
        dtype=self.dtype,
        device=self.device,
        memory_format=suggest_memory_format(self),
    )
    torch.ops.xpurt.max_unpool(self, indices, 2, out)
    return out


def unpool3d(
    self: Tensor,
    indices: Tensor,
    output_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
) -> Tensor:
    """Raises RuntimeError for shapes that do not fit."""
    op, how = torch.ops.aten.max_unpool3d, (output_size, stride, padding)
    if self.numel() == 0 or 0 in output_size:
        return op(self, indices, *how)  # type: ignore[no-any-return]
    (made,) = _C.meta_results("aten::max_unpool3d", "", self, indices, *how)
    out = self.new_empty(made.shape)
    torch.ops.xpurt.max_unpool(self, indices, 3, out)
    return out


ROWS: tuple[CustomKernel | Decomposed, ...] = (
    CustomKernel(
        "xpurt::max_unpool",
        (ZERO, PUT_BACK),
        NUMERIC,
        schema="(Tensor self, Tensor indices, int axes, Tensor(a!) out) -> ()",
        fault="Found an invalid max index",
    ),
    Decomposed("max_unpool2d", unpool2d),
    Decomposed("max_unpool3d", unpool3d),
)
