"""Kernels of the parts of a factorization that matrix products can't compute.

A matrix is factorized in panels of WIDTH columns (Golub, Van Loan: "Matrix
Computations", 2013, chapters 3 and 4). Matrices are the last two dimensions of three;
the first one is the batch. `begin` is the number of the panel's first column.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.row import Kind

WIDTH = 32

# PyTorch's CPU kernels have these types only.
KIND = Kind("fdxz")

FUNCTIONS = """
#ifndef LANES
#define LANES 1
#endif
#if LANES > 1
#define TOGETHER sub_group_barrier(CLK_GLOBAL_MEM_FENCE)
#else
#define TOGETHER
#endif

#ifdef COMPLEX
#define TIMES(p, q) fused_times(p, q)
#define TIMES_CONJUGATE(p, q) fused_times(p, (C)((q).x, -(q).y))
#define OVER(p, q) over(p, q)
#define REAL_PART(p) ((p).x)
#define OF_REAL(p) ((C)(p, 0))
#define MAGNITUDE(p) (fabs((p).x) + fabs((p).y))
#else
typedef C R;
#define TIMES(p, q) ((p) * (q))
#define TIMES_CONJUGATE(p, q) ((p) * (q))
#define OVER(p, q) ((p) / (q))
#define REAL_PART(p) (p)
#define OF_REAL(p) (p)
#define MAGNITUDE(p) fabs(p)
#endif

static R larger_of(R p, R q) { return p > q ? p : q; }
static int smaller_of(int p, int q) { return min(p, q); }
"""


def entry(tensor: str) -> str:
    """A macro for the offset of an element of matrix `b`."""
    strides = (f"{tensor}_stride({d})" for d in range(3))
    batch, row, column = strides
    return (
        f"#define IN_{tensor}(r, c) (b * {batch} + (r) * {row} + (c) * {column})\n"
        f"#define LOAD_{tensor}(r, c) {tensor}_load(IN_{tensor}(r, c))"
    )


# The square block at the top of a panel, from left to right. A lane computes rows. A
# pivot that is not positive ends the factorization of its matrix.
CHOLESKY_BLOCK = Step(
    over="panel",
    along=("1", "2"),
    lanes=True,
    text=f"""
  const long b = i;
{entry("panel")}
  if (info_load(b) != 0) return;
  const long width = panel_size(2);
  for (long j = 0; j < width; ++j) {{
    for (long r = j + lane; r < width; r += LANES) {{
      C sum = LOAD_panel(r, j);
      for (long t = 0; t < j; ++t)
        sum -= TIMES_CONJUGATE(LOAD_panel(r, t), LOAD_panel(j, t));
      panel_store(IN_panel(r, j), sum);
    }}
    TOGETHER;
    const R pivot = REAL_PART(LOAD_panel(j, j));
    if (!(pivot > 0)) {{
      if (lane == 0) info_store(b, begin + j + 1);
      return;
    }}
    TOGETHER;
    const R root = sqrt(pivot);
    for (long r = j + lane; r < width; r += LANES)
      panel_store(IN_panel(r, j), r == j ? OF_REAL(root) : LOAD_panel(r, j) / root);
    TOGETHER;
  }}
""",
)

# The rows below the block, one per work-item.
CHOLESKY_ROWS = Step(
    over="panel",
    along=("2",),
    text=f"""
  const long rows = panel_size(1), width = panel_size(2), b = i / rows, r = i % rows;
{entry("panel")}
  if (r < width || info_load(b) != 0) return;
  for (long j = 0; j < width; ++j) {{
    C sum = LOAD_panel(r, j);
    for (long t = 0; t < j; ++t)
      sum -= TIMES_CONJUGATE(LOAD_panel(r, t), LOAD_panel(j, t));
    panel_store(IN_panel(r, j), sum / REAL_PART(LOAD_panel(j, j)));
  }}
""",
)

# A panel with partial pivoting. A lane computes rows. Of several largest elements the
# first one is the pivot. A column of zeros is left as it is.
LU_PANEL = Step(
    over="panel",
    along=("1", "2"),
    lanes=True,
    text=f"""
  const long b = i;
{entry("panel")}
  const int rows = panel_size(1), width = panel_size(2);
  long failed = 0;
  for (int j = 0; j < min(rows, width); ++j) {{
    R most = -1;
    int place = j;
    for (int r = j + lane; r < rows; r += LANES) {{
      const R size = MAGNITUDE(LOAD_panel(r, j));
      if (size > most) {{
        most = size;
        place = r;
      }}
    }}
    const R own = most;
    across(most, larger_of)
    if (own != most) place = rows;
    across(place, smaller_of)
    if (place == rows) place = j;
    if (lane == 0)
      pivots_store(b * pivots_stride(0) + (begin + j) * pivots_stride(1), begin + place + 1);
    if (place != j) {{
      for (int c = lane; c < width; c += LANES) {{
        const C upper = LOAD_panel(j, c);
        panel_store(IN_panel(j, c), LOAD_panel(place, c));
        panel_store(IN_panel(place, c), upper);
      }}
    }}
    TOGETHER;
    if (most == 0) {{
      if (failed == 0) failed = begin + j + 1;
      continue;
    }}
    const C pivot = LOAD_panel(j, j);
    for (int r = j + 1 + lane; r < rows; r += LANES) {{
      const C factor = OVER(LOAD_panel(r, j), pivot);
      panel_store(IN_panel(r, j), factor);
      for (int c = j + 1; c < width; ++c)
        panel_store(IN_panel(r, c), LOAD_panel(r, c) - TIMES(factor, LOAD_panel(j, c)));
    }}
    TOGETHER;
  }}
  if (lane == 0 && failed != 0 && info_load(b) == 0) info_store(b, failed);
""",
)

# The columns beside a panel, one per work-item: its exchanges of rows, and to the right
# of it the solution with the panel's triangle.
LU_COLUMNS = Step(
    over="mat",
    along=("1",),
    text=f"""
  const long columns = mat_size(2), b = i / columns, c = i % columns;
{entry("mat")}
  if (c >= begin && c < begin + width) return;
  for (long r = begin; r < begin + width; ++r) {{
    const long other = pivots_load(b * pivots_stride(0) + r * pivots_stride(1)) - 1;
    if (other == r) continue;
    const C upper = LOAD_mat(r, c);
    mat_store(IN_mat(r, c), LOAD_mat(other, c));
    mat_store(IN_mat(other, c), upper);
  }}
  if (c < begin) return;
  for (long r = begin + 1; r < begin + width; ++r) {{
    C sum = LOAD_mat(r, c);
    for (long t = begin; t < r; ++t) sum -= TIMES(LOAD_mat(r, t), LOAD_mat(t, c));
    mat_store(IN_mat(r, c), sum);
  }}
""",
)

# Solves mat X = rhs, with a triangle `mat`, one column per work-item.
SUBSTITUTION = Step(
    over="rhs",
    along=("1",),
    text=f"""
  const long size = rhs_size(1), columns = rhs_size(2), b = i / columns, c = i % columns;
{entry("mat")}
{entry("rhs")}
  for (long s = 0; s < size; ++s) {{
    const long r = upper ? size - 1 - s : s;
    C sum = LOAD_rhs(r, c);
    for (long t = 0; t < s; ++t) {{
      const long q = upper ? size - 1 - t : t;
      sum -= TIMES(LOAD_mat(r, q), LOAD_rhs(q, c));
    }}
    rhs_store(IN_rhs(r, c), unit ? sum : OVER(sum, LOAD_mat(r, r)));
  }}
""",
)

# The exchanges of rows that the pivots stand for, in their order or `backward`, one
# column per work-item.
EXCHANGES = Step(
    over="rhs",
    along=("1",),
    text=f"""
  const long columns = rhs_size(2), b = i / columns, c = i % columns;
{entry("rhs")}
  const long count = pivots_size(1);
  for (long k = 0; k < count; ++k) {{
    const long r = backward ? count - 1 - k : k;
    const long other = pivots_load(b * pivots_stride(0) + r * pivots_stride(1)) - 1;
    if (other < 0 || other >= rhs_size(1)) {{
      FAULT;
      continue;
    }}
    if (other == r) continue;
    const rhs_T upper = LOAD_rhs(r, c);
    rhs_store(IN_rhs(r, c), LOAD_rhs(other, c));
    rhs_store(IN_rhs(other, c), upper);
  }}
""",
)


def part(
    name: str,
    steps: tuple[Step, ...],
    arguments: str,
    flops: float = 2 * WIDTH,
    fault: str = "",
) -> CustomKernel:
    return CustomKernel(
        f"xpurt::{name}",
        steps,
        KIND if name != "exchange_rows" else Kind("fdxzl"),
        schema=f"({arguments}) -> ()",
        functions=FUNCTIONS,
        flops=flops,
        fault=fault,
    )


ROWS = (
    part(
        "cholesky_panel",
        (CHOLESKY_BLOCK, CHOLESKY_ROWS),
        "Tensor(a!) panel, Tensor(b!) info, int begin",
    ),
    part(
        "lu_panel",
        (LU_PANEL,),
        "Tensor(a!) panel, Tensor(b!) pivots, Tensor(c!) info, int begin",
    ),
    part(
        "lu_columns",
        (LU_COLUMNS,),
        "Tensor(a!) mat, Tensor pivots, int begin, int width",
    ),
    part(
        "substitute",
        (SUBSTITUTION,),
        "Tensor(a!) rhs, Tensor mat, bool upper, bool unit",
    ),
    part(
        "exchange_rows",
        (EXCHANGES,),
        "Tensor(a!) rhs, Tensor pivots, bool backward",
        flops=1,
        fault="pivots must be between 1 and LU.size(-2), as of torch.linalg.lu_factor",
    ),
)
