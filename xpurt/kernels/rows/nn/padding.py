"""Rows that pad at the borders.

Forward, a work-item computes an element of the result: it maps the element's index back
into the input, and reads there. Backward, a work-item computes an element of the
input's gradient: it adds up the gradients of all results that read the element."""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Result, Step
from xpurt.kernels.kinds.row import ARITHMETIC, FLOATING_ONLY

# Pairs of numbers, the last dimension first; negative numbers crop.
DIMENSIONS = "for (int k = 0; k < padding_COUNT / 2; ++k)"


def forward(inside: str) -> tuple[Step]:
    """`inside` maps `x` back into the `n` elements of a dimension."""
    return (
        Step(
            over="out",
            text=f"""
  long at[8];
  const long to = out_unravel(i, at);
  {DIMENSIONS} {{
    const int d = out_RANK - 1 - k;
    const long n = self_size(d);
    long x = at[d] - padding[2 * k];
    {inside}
    at[d] = x;
  }}
  out_store(to, self_load(self_at(at)));
""",
        ),
    )


def backward(first: str, last: str, where: str, valid: str = "1") -> tuple[Step]:
    """Adds up elements of the gradient: the index is `where`, for each `c` from `first`
    to `last` that is `valid`. Along each dimension `x` is the element's index, `n` the
    size, `m` the size of the gradient, and `before` the padding at the beginning."""
    return (
        Step(
            over="out",
            text=f"""
  long at[8], inner[8], least[3], count[3], total = 1;
  const long to = out_unravel(i, inner);
  for (int d = 0; d < out_RANK; ++d) at[d] = inner[d];
  {DIMENSIONS} {{
    const int d = out_RANK - 1 - k;
    const long n = out_size(d), m = grad_output_size(d);
    const long before = padding[2 * k], x = inner[d];
    least[k] = max({first}, 0L);
    count[k] = max(min({last}, m - 1) - least[k] + 1, 0L);
    total *= count[k];
  }}
  C sum = 0;
  for (long j = 0; j < total; ++j) {{
    long rest = j;
    int read = 1;
    {DIMENSIONS} {{
      const int d = out_RANK - 1 - k;
      const long n = out_size(d), m = grad_output_size(d);
      const long before = padding[2 * k], x = inner[d];
      const long c = least[k] + rest % count[k];
      rest /= count[k];
      at[d] = {where};
      read = read && at[d] >= 0 && at[d] < m && ({valid});
    }}
    if (read) sum += grad_output_load(grad_output_at(at));
  }}
  out_store(to, sum);
""",
        ),
    )


REFLECT = forward("x = x < 0 ? -x : x; x = x >= n ? 2 * (n - 1) - x : x;")
REPLICATE = forward("x = clamp(x, 0L, n - 1);")
# The element itself, and its mirror images at both ends. The element at an end has no
# mirror image at that end.
REFLECT_BACK = backward(
    "0L",
    "2L",
    "c == 0 ? before + x : before + (c == 1 ? -x : 2 * (n - 1) - x)",
    "c == 0 || (c == 1 ? x > 0 && x <= before : x < n - 1)",
)
REPLICATE_BACK = backward(
    "x == 0 ? 0L : before + x", "x == n - 1 ? m - 1 : before + x", "c"
)

# PyTorch's meta functions give the layout of other devices, which is contiguous.
OF_THE_CPU = Result(laid_out_like="self")

ROWS = (
    *(
        CustomKernel(f"{name}{k}d", step, ARITHMETIC, results=(OF_THE_CPU,))
        for name, step in (("reflection_pad", REFLECT), ("replication_pad", REPLICATE))
        for k in (1, 2, 3)
    ),
    *(
        CustomKernel(f"reflection_pad{k}d_backward", REFLECT_BACK, FLOATING_ONLY)
        for k in (1, 2, 3)
    ),
    *(
        CustomKernel(f"replication_pad{k}d_backward", REPLICATE_BACK, FLOATING_ONLY)
        for k in (1, 2, 3)
    ),
)
