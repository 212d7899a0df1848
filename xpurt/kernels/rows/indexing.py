"""Rows that read elements at indices: a work-item computes an element of the result."""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.row import MOVING

LISTED = tuple(f"indices{k}" for k in range(8))

# Stores the position in self that the k-th index chooses in place[k]. `at` is the index
# in the result, in which the dimensions of the indices begin at FIRST.
PICK = """
#define FIRST (indices_ADJACENT ? indices_FIRST : 0)
#define PICK(k) { \\
    const long n = self_size(k); \\
    const long chosen = indices##k##_load(indices##k##_at(at + FIRST)); \\
    if (chosen < -n || chosen >= n) { FAULT; return; } \\
    place[k] = chosen < 0 ? chosen + n : chosen; \\
    listed |= 1 << k; \\
  }
// The dimensions without an index are the remaining ones of the result, in order.
#define FILL_IN \\
  for (int k = 0, d = 0; k < self_RANK; ++k) { \\
    if (listed >> k & 1) continue; \\
    if (d == FIRST) d += indices_RANK; \\
    place[k] = at[d++]; \\
  }
"""

BY_LIST = Step(
    over="out",
    also_reads=LISTED,
    text=PICK
    + """
  long at[16], place[8];
  const long to = out_unravel(i, at);
  int listed = 0;
  indices_EACH(PICK)
  FILL_IN
  out_store(to, self_load(self_at(place)));
""",
)


def along_dim(place: str) -> Step:
    """Reads `self` at the index of the result, with dimension `dim` replaced by the
    element of the tensor `index` at offset `place`."""
    return Step(
        over="out",
        text=f"""
  long at[8];
  const long to = out_unravel(i, at);
  const int d = wrapped(dim, self_RANK);
  const long k = index_load({place});
  if (k < 0 || k >= self_size(d)) {{
    FAULT;
    return;
  }}
  at[d] = k;
  out_store(to, self_load(self_at(at)));
""",
    )


GATHER = along_dim("index_at(at)")
SELECT = along_dim("out_RANK == 0 ? 0 : at[d] * index_stride(0)")

TAKE = Step(
    over="out",
    text="""
  long at[8];
  const long to = out_unravel(i, at);
  const long n = self_numel;
  long k = index_load(index_at(at));
  if (k < -n || k >= n) {
    FAULT;
    return;
  }
  k = k < 0 ? k + n : k;
  out_store(to, self_load(self_unravel(k, at)));
""",
)

ROWS = (
    CustomKernel("gather", (GATHER,), MOVING, same_type=True),
    CustomKernel("index_select", (SELECT,), MOVING, same_type=True),
    CustomKernel("index", (BY_LIST,), MOVING),
    CustomKernel("take", (TAKE,), MOVING, same_type=True),
)
