"""Rows of distances between vectors, their gradients, and cross products.

A distance is the Minkowski norm of order p of the difference. For p = 0 it is the
number of elements that differ, for p = infinity the largest difference.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY, NUMERIC
from xpurt.torch_versions import distance_kernel

NORM = """
static C joined(C acc, C difference, C order) {
  const C x = fabs(difference);
  if (isinf(order)) return maximum_of(acc, x);
  return acc + (order == 0 ? (C)(x != 0) : order == 1 ? x : order == 2 ? x * x
                                                        : pow(x, order));
}

static C finished(C acc, C order) {
  if (order == 2) return sqrt(acc);
  return order == 0 || order == 1 || isinf(order) ? acc : pow(acc, 1 / order);
}

// The derivative of a distance by one of the differences, for the gradient g.
static C slope(C difference, C norm, C g, C order) {
  const C x = fabs(difference), side = (difference > 0) - (difference < 0);
  if (order == 0 || difference == 0) return 0;
  if (order == 1) return side * g;
  if (isinf(order)) return x == norm ? side * g : 0;
  if (norm == 0) return 0;
  if (order == 2) return g * difference / norm;
  return side * g * pow(x / norm, order - 1);
}
"""

# The offset of the result's `index` in a tensor whose batch dimensions broadcast, and
# whose last two dimensions are rows and columns.
BATCHES = """
static long batch_at(int rank, __private const long* size, __private const long* stride,
                     int wide, const long* index) {
  long offset = 0;
  for (int d = 0; d < rank - 2; ++d) {
    const int place = wide - rank + d;
    if (place >= 0 && size[d] != 1) offset += index[place] * stride[d];
  }
  return offset;
}
"""


def batch_at(name: str) -> str:
    """The offset, in tensor `name`, of the batch to which `index` of the result
    belongs."""
    return f"batch_at({name}_RANK, a.size_{name}, a.stride_{name}, out_RANK, index)"


CDIST = f"""
  long index[8];
  const long to = out_unravel(i, index);
  const int row = x1_RANK - 2, other = x2_RANK - 2;
  const long left = {batch_at("x1")} + index[out_RANK - 2] * x1_stride(row);
  const long right = {batch_at("x2")} + index[out_RANK - 1] * x2_stride(other);
  C acc = 0;
  for (long k = 0; k < x1_size(row + 1); ++k) {{
    const C difference = x1_load(left + k * x1_stride(row + 1)) -
                         x2_load(right + k * x2_stride(other + 1));
    acc = joined(acc, difference, p);
  }}
  out_store(to, finished(acc, p));
"""

CDIST_BACKWARD = f"""
  long index[8];
  const long to = out_unravel(i, index);
  const int row = x1_RANK - 2, other = x2_RANK - 2, last = grad_output_RANK - 1;
  const long k = index[out_RANK - 1], n = index[out_RANK - 2];
  const C x = x1_load({batch_at("x1")} + n * x1_stride(row) + k * x1_stride(row + 1));
  const long right = {batch_at("x2")} + k * x2_stride(other + 1);
  const long slopes = {batch_at("grad_output")} + n * grad_output_stride(last - 1);
  const long lengths = {batch_at("cdist")} + n * cdist_stride(last - 1);
  // Without batches the gradient is 0, in the shape of x1.
  const long others = grad_output_numel == 0 ? 0 : x2_size(other);
  C acc = 0;
  for (long m = 0; m < others; ++m) {{
    const C difference = x - x2_load(right + m * x2_stride(other));
    acc += slope(difference, cdist_load(lengths + m * cdist_stride(last)),
                 grad_output_load(slopes + m * grad_output_stride(last)), p);
  }}
  out_store(to, acc);
"""

# Pairs (first, second) of rows of a matrix with first < second, in the order of first.
PDIST = """
  const long n = self_size(0);
  // The rounded root gives a row near the right one.
  const float edge = n - 0.5f;
  long first = clamp((long)(edge - sqrt(fmax(edge * edge - 2 * i, 0.0f))), 0L, n - 2);
  while (first > 0 && first * (2 * n - first - 1) / 2 > i) --first;
  while ((first + 1) * (2 * n - first - 2) / 2 <= i) ++first;
  const long second = i - first * (2 * n - first - 1) / 2 + first + 1;
  C acc = 0;
  for (long k = 0; k < self_size(1); ++k) {
    const C difference = self_load(first * self_stride(0) + k * self_stride(1)) -
                         self_load(second * self_stride(0) + k * self_stride(1));
    acc = joined(acc, difference, p);
  }
  out_store(i * out_stride(0), finished(acc, p));
"""

PDIST_BACKWARD = """
  long index[8];
  const long to = out_unravel(i, index), n = self_size(0);
  const C x = self_load(self_at(index));
  const long row = index[0], column = index[1] * self_stride(1);
  C acc = 0;
  for (long m = 0; m < n; ++m) {
    if (m == row) continue;
    const long first = min(m, row), second = max(m, row);
    const long pair = first * (2 * n - first - 1) / 2 + second - first - 1;
    const C difference = x - self_load(m * self_stride(0) + column);
    acc += slope(difference, pdist_load(pair * pdist_stride(0)),
                 grad_output_load(pair * grad_output_stride(0)), p);
  }
  out_store(to, acc);
"""

# One vector of three elements; sizes of 1 broadcast. PyTorch rounds each product to the
# type of the tensors, which shows if two products cancel. So each one is stored, and
# loaded again.
CROSS = """
  long index[8];
  const long to = out_line(i, dim, index);
  const int d = wrapped(dim, out_RANK);
  long left = 0, right = 0;
  for (int k = 0; k < out_RANK; ++k) {
    left += (self_size(k) == 1 ? 0 : index[k]) * self_stride(k);
    right += (other_size(k) == 1 ? 0 : index[k]) * other_stride(k);
  }
  C x[3], y[3];
  for (int k = 0; k < 3; ++k) {
    x[k] = self_load(left + k * self_stride(d));
    y[k] = other_load(right + k * other_stride(d));
  }
  for (int k = 0; k < 3; ++k) {
    const int next = (k + 1) % 3, last = (k + 2) % 3;
    const long at = to + k * out_stride(d);
    out_store(at, x[next] * y[last]);
    const C first = out_load(at);
    out_store(at, x[last] * y[next]);
    out_store(at, first - out_load(at));
  }
"""

ROWS: tuple[CustomKernel | Decomposed, ...] = (
    CustomKernel(
        "_cdist_forward",
        (Step(over="out", text=CDIST),),
        FLOATING_ONLY,
        alike=("x2",),
        functions=NORM + BATCHES,
        flops=30,
    ),
    CustomKernel(
        "_cdist_backward",
        (Step(over="out", text=distance_kernel(CDIST_BACKWARD)),),
        FLOATING_ONLY,
        functions=NORM + BATCHES,
        flops=60,
    ),
    CustomKernel(
        "_pdist_forward",
        (Step(over="out", text=PDIST),),
        FLOATING_ONLY,
        functions=NORM,
        flops=30,
    ),
    CustomKernel(
        "_pdist_backward",
        (Step(over="self", text=distance_kernel(PDIST_BACKWARD)),),
        FLOATING_ONLY,
        like="self",
        functions=NORM,
        flops=60,
    ),
    CustomKernel(
        "linalg_cross",
        (Step(over="out", along=("dim",), text=CROSS),),
        NUMERIC,
        alike=("other",),
    ),
    Decomposed("renorm"),
)
