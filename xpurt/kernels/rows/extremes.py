"""Rows that find the largest or smallest element of each line, and its index. A
sub-group runs each line. Of several equal elements the first is found. NaN is beyond
all numbers."""

import torch

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import ARITHMETIC


def extreme(better: str, value: str, place: str) -> tuple[Step]:
    """A step that stores the extreme of each line along `dim` in the result `value`, if
    that is not "", and its index in `place`."""
    stored = f"{value}_store({value}_unravel(i, at), best);" if value else ""
    return (
        Step(
            over="self",
            along=("dim",),
            lanes=True,
            text=f"""
#define BEFORE(x, k, best, found) \\
  (found < 0 || x {better} best || (x != x && best == best) || \\
   ((x == best || (x != x && best != best)) && k < found))
  long at[8], found = -1;
#if HAS_dim
  const long from = self_line(i, dim, at);
  const int d = wrapped(dim, self_RANK);
  const long n = self_size(d);
#define ELEMENT(k) self_load(from + k * self_stride(d))
#else
  const long n = self_numel;
#define ELEMENT(k) self_load(self_unravel(k, at))
#endif
  C best = 0;
  for (long k = lane; k < n; k += LANES) {{
    const C x = ELEMENT(k);
    if (BEFORE(x, k, best, found)) {{
      best = x;
      found = k;
    }}
  }}
#if LANES > 1
  for (uint far = LANES / 2; far > 0; far /= 2) {{
    const C x = sub_group_shuffle_xor(best, far);
    const long k = sub_group_shuffle_xor(found, far);
    if (k >= 0 && BEFORE(x, k, best, found)) {{
      best = x;
      found = k;
    }}
  }}
#endif
  if (lane > 0) return;
  {stored}
  {place}_store({place}_unravel(i, at), found);
""",
        ),
    )


def aminmax(
    self: torch.Tensor, *, dim: int | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Raises RuntimeError if `self` is empty and `dim` is None."""
    if dim is None and self.numel() == 0:
        raise RuntimeError("aminmax(): an empty tensor has no smallest element")
    dims = () if dim is None else (dim,)
    return self.amin(dims, keepdim), self.amax(dims, keepdim)


ROWS = (
    CustomKernel("argmax", extreme(">", "", "out"), ARITHMETIC),
    CustomKernel("argmin", extreme("<", "", "out"), ARITHMETIC),
    CustomKernel(
        "max",
        extreme(">", "out0", "out1"),
        ARITHMETIC,
        overloads=("dim", "dim_max"),
    ),
    CustomKernel(
        "min",
        extreme("<", "out0", "out1"),
        ARITHMETIC,
        overloads=("dim", "dim_min"),
    ),
    Decomposed("aminmax", aminmax, same_type=True),
)
