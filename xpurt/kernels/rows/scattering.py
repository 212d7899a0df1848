"""Rows that write elements at indices.

Several elements may go to the same target. Then one work-item of a step writes all
elements of each of its targets, in the order of PyTorch's CPU kernels. So results are
the same each time, and no atomic operation is needed.
"""

import torch

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Scratch, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import ARITHMETIC, FLOATING_ONLY, NUMERIC
from xpurt.kernels.rows.indexing import LISTED, PICK

# How an element `x` is combined with `old`, by the name of the reduction.
REDUCED = """
#if reduce_IS_add || reduce_IS_sum || reduce_IS_mean
#define COMBINED (old + x)
#elif reduce_IS_multiply || reduce_IS_prod
#define COMBINED (old * x)
#elif reduce_IS_amax
#define COMBINED maximum_of(old, x)
#else
#define COMBINED minimum_of(old, x)
#endif
#if reduce_IS_prod
#define IDENTITY 1
#elif reduce_IS_amax
#define IDENTITY LOWEST
#elif reduce_IS_amin
#define IDENTITY HIGHEST
#else
#define IDENTITY 0
#endif
"""

BEGIN = """
    at[d] = target;
    count_store(count_at(at), include_self != 0);
    if (!include_self) out_store(place, IDENTITY);
"""
COUNT = """
    at[d] = target;
    count_store(count_at(at), count_load(count_at(at)) + 1);
"""
# The mean of integers is rounded down. A target that was divided is not divided again.
DIVIDE = """
    at[d] = target;
    const C seen = count_load(count_at(at)), sum = TOTAL;
    count_store(count_at(at), 1);
    if (seen > 1) {
      const C mean = sum / seen;
      const int below = (C)0.5 == 0 && mean * seen > sum;
      KEEP(mean - below);
    }
"""
# Rounded to its type at each step, a sum of ones in bfloat16 would not pass 256. So
# halves are combined in `wide`, in the type of the computation.
WIDE = """
#if HAS_wide
  const long sums = wide_line(i, dim, at);
#define AT_SUM (sums + target * wide_stride(d))
#define TOTAL wide_load(AT_SUM)
#define KEEP(v) wide_store(AT_SUM, v)
#else
#define TOTAL out_load(place)
#define KEEP(v) out_store(place, v)
#endif
"""
WIDEN = "KEEP(out_load(place));"
NARROW = "out_store(place, TOTAL);"


def each(index: str, body: str, wrong: str = "") -> str:
    """`body` for each `k` of a line of the index. The index chooses the element
    `target` of a line of the result, at offset `place`. For one out of range, `wrong`
    runs instead."""
    return f"""
  for (long k = 0; k < steps; ++k) {{
    at[d] = k;
    const long target = {index};
    if (target < 0 || target >= n) {{ {wrong} continue; }}
    const long place = to + target * out_stride(d);
    {body}
  }}
"""


def lines(index: str, body: str, within: str = "", reduces: bool = False) -> Step:
    """`body` along each line of the result; see `each`. `within` returns early for
    lines to leave out. `reduces`: `body` uses COMBINED, which depends on the argument
    `reduce`. If `body` uses TOTAL, it combines halves in the scratch tensor `wide`."""
    begin = f"{REDUCED}\n#if HAS_include_self\n{each(index, BEGIN)}\n#endif"
    count = f"\n#if reduce_IS_mean\n{COUNT}\n#endif\n"
    divide = f"#if reduce_IS_mean\n{each(index, DIVIDE)}\n#endif"
    widens = "TOTAL" in body
    widen = f"\n#if HAS_wide\n{each(index, WIDEN)}\n#endif\n"
    narrow = f"\n#if HAS_wide\n{each(index, NARROW)}\n#endif\n"
    return Step(
        over="out",
        along=("dim",),
        text=f"""
  if (index_numel == 0) return;
  long at[8];
  const long to = out_line(i, dim, at);
  const int d = wrapped(dim, out_RANK);
  const long n = out_size(d);
  long steps = index_numel;
  {within}
  {WIDE if widens else ""}
  {begin if reduces else ""}
  {widen if widens else ""}
  {each(index, body + (count if reduces else ""), "FAULT;")}
  {divide if reduces else ""}
  {narrow if widens else ""}
""",
    )


# The index has as many dimensions as the result, and each may be smaller.
SMALLER = """
  for (int k = 0; k < out_RANK; ++k) {
    if (k != d && at[k] >= index_size(k)) return;
  }
  steps = index_size(d);
"""
LIKE_SELF = "index_load(index_at(at))"
# The index has one dimension or none.
ALONG = "index_load(index_RANK ? k * index_stride(0) : 0)"


def combining(source: str, result: str) -> str:
    return f"""
    const C x = {source}, old = TOTAL;
    KEEP({result});
"""


def scatter(source: str, result: str) -> tuple[Step]:
    reduces = result == "COMBINED"
    body = f"out_store(place, {source});" if result == "x" else ""
    body = body or combining(source, result)
    return (lines(LIKE_SELF, body, SMALLER, reduces),)


# PyTorch checks this within the kernel of index_add.
SAME_SHAPE = """
  for (int k = 0; k < out_RANK; ++k) {
    if (k == d || (k < source_RANK && source_size(k) == out_size(k))) continue;
    FAULT;
    return;
  }
"""

SRC = "src_load(src_at(at))"
SOURCE = "source_load(source_at(at))"
WRAPPED = f"({ALONG} < 0 ? {ALONG} + n : {ALONG})"
ADDING = (Scratch("wide", "self", of_halves=True),)
REDUCING = (Scratch("count", "self", integral=True), *ADDING)

# Without accumulation it is unspecified which of several values remains.
PUT = Step(
    over="values",
    also_reads=LISTED,
    text=PICK
    + """
  if (accumulate) return;
  long at[16], place[8];
  const long from = values_unravel(i, at);
  int listed = 0;
  indices_EACH(PICK)
  FILL_IN
  out_store(out_at(place), values_load(from));
""",
)

# One work-item per element of the result at index 0 of the dimensions that are indexed.
ADD = Step(
    over="out",
    also_reads=LISTED,
    text=PICK
    + """
#define LIST(k) if (to[k] != 0) return; listed |= 1 << k;
#define COUNT(k) steps = indices##k##_numel;
#define UNRAVEL(k) indices##k##_unravel(j, at + FIRST);
#define TARGET(k) \\
    long target##k = indices##k##_load(indices##k##_at(at + FIRST)); \\
    if (target##k < 0) target##k += self_size(k); \\
    if (target##k < 0 || target##k >= self_size(k)) { FAULT; continue; } \\
    to[k] = target##k;
  if (!accumulate) return;
  long at[16], to[8], steps = 1;
  int listed = 0;
  out_unravel(i, to);
  indices_EACH(LIST)
  indices_EACH(COUNT)
  for (int k = 0, d = 0; k < self_RANK; ++k) {
    if (listed >> k & 1) continue;
    if (d == FIRST) d += indices_RANK;
    at[d++] = to[k];
  }
  for (long j = 0; j < steps; ++j) {
    indices_EACH(UNRAVEL)
    indices_EACH(TARGET)
    const C x = values_load(values_at(at));
    out_store(out_at(to), out_load(out_at(to)) + x);
  }
""",
)

PUT_FLAT = Step(
    over="index",
    text="""
  if (accumulate && i > 0) return;
  long at[8];
  const long n = self_numel, end = accumulate ? index_numel : i + 1;
  for (long k = i; k < end; ++k) {
    long target = index_load(index_unravel(k, at));
    if (target < -n || target >= n) { FAULT; continue; }
    const C x = source_load(source_unravel(k, at));
    const long to = out_unravel(target < 0 ? target + n : target, at);
    if (accumulate) {
      out_store(to, out_load(to) + x);
    } else {
      out_store(to, x);
    }
  }
""",
)

OCCURRENCES = Step(
    over="indices",
    text="""
  if (!scale_grad_by_freq) return;
  long at[8];
  const long mine = indices_load(indices_unravel(i, at)), n = indices_numel;
  long same = 0;
  for (long k = 0; k < n; ++k) same += indices_load(indices_unravel(k, at)) == mine;
  count_store(i, same);
""",
)

# A work-item computes one column of the weights.
EMBEDDING_BACKWARD = Step(
    over="out",
    along=("0",),
    text="""
  long at[8];
  for (long k = 0; k < num_weights; ++k) out_store(k * out_stride(0) + i, 0);
  const long n = indices_numel, columns = out_size(1);
  for (long k = 0; k < n; ++k) {
    const long row = indices_load(indices_unravel(k, at));
    if (row == padding_idx) continue;
    if (row < 0 || row >= num_weights) { FAULT; continue; }
    C x = grad_output_load(grad_output_unravel(k * columns + i, at));
    if (scale_grad_by_freq) x /= count_load(k);
    const long to = row * out_stride(0) + i * out_stride(1);
    out_store(to, out_load(to) + x);
  }
""",
)


def index_fill(
    self: torch.Tensor, dim: int, index: torch.Tensor, value: torch.Tensor
) -> torch.Tensor:
    """Reads the value, which waits for the device. Raises RuntimeError if it is not
    0-dimensional."""
    if value.dim() != 0:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.dim()} dimension(s)."
        )
    return torch.index_fill(self, dim, index, value.item())


ROWS = (
    CustomKernel(
        "scatter",
        scatter(SRC, "x"),
        ARITHMETIC,
        begins_as="self",
        overloads=("src", "src_out"),
    ),
    CustomKernel(
        "scatter",
        scatter("value", "x"),
        ARITHMETIC,
        begins_as="self",
        overloads=("value", "value_out"),
    ),
    CustomKernel(
        "scatter",
        scatter(SRC, "COMBINED"),
        ARITHMETIC,
        begins_as="self",
        overloads=("reduce", "reduce_out"),
        scratch=REDUCING,
    ),
    CustomKernel(
        "scatter",
        scatter("value", "COMBINED"),
        ARITHMETIC,
        begins_as="self",
        overloads=("value_reduce", "value_reduce_out"),
        scratch=REDUCING,
    ),
    CustomKernel(
        "scatter_add",
        scatter(SRC, "old + x"),
        ARITHMETIC,
        begins_as="self",
        scratch=ADDING,
    ),
    CustomKernel(
        "scatter_reduce",
        scatter(SRC, "COMBINED"),
        ARITHMETIC,
        begins_as="self",
        scratch=REDUCING,
    ),
    CustomKernel(
        "index_add",
        (lines(ALONG, combining(SOURCE, "old + x * (C)alpha"), SAME_SHAPE),),
        ARITHMETIC,
        begins_as="self",
        scratch=ADDING,
    ),
    CustomKernel(
        "index_copy",
        (lines(ALONG, f"out_store(place, {SOURCE});"),),
        ARITHMETIC,
        begins_as="self",
    ),
    CustomKernel(
        "index_fill",
        (lines(WRAPPED, "out_store(place, value);"),),
        ARITHMETIC,
        begins_as="self",
        overloads=("int_Scalar", "int_Scalar_out"),
        types=("index=l",),
    ),
    Decomposed("index_fill", index_fill, overloads=("int_Tensor", "int_Tensor_out")),
    CustomKernel(
        "index_reduce",
        (lines(ALONG, combining(SOURCE, "COMBINED"), reduces=True),),
        NUMERIC,
        begins_as="self",
        scratch=REDUCING,
    ),
    CustomKernel(
        "_index_put_impl_",
        (PUT, ADD),
        ARITHMETIC,
        begins_as="self",
        alike=("values",),
    ),
    CustomKernel(
        "put",
        (PUT_FLAT,),
        ARITHMETIC,
        begins_as="self",
        alike=("source",),
        types=("index=l",),
    ),
    CustomKernel(
        "embedding_dense_backward",
        (OCCURRENCES, EMBEDDING_BACKWARD),
        FLOATING_ONLY,
        scratch=(Scratch("count", "indices", integral=True),),
    ),
)
