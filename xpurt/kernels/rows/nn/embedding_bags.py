"""Rows of embedding bags: sums, means or maxima of rows of a table, and gradients.

A bag is a run of indices, from its offset to the offset of the next bag. The forward
ops return the same tensors for the backward as PyTorch's kernel, complete in every
mode, so that forward and backward may run on different tiers.
"""

import torch
from torch import Tensor

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY

SUM, MEAN, LARGEST = range(3)

# The first of equal elements is the largest, and so is the first element if it is NaN.
BAGS = Step(
    over="out",
    text="""
  const long bags = out_size(0), columns = out_size(1), n = indices_numel;
  const long bag = i / columns, column = i - bag * columns;
  const long begin = offsets_load(bag * offsets_stride(0));
  const long end = bag + 1 < bags ? offsets_load((bag + 1) * offsets_stride(0)) : n;
  if (begin < 0 || end > n || begin > end || (bag == 0 && begin != 0)) {
    FAULT;
    return;
  }
  C acc = 0;
  long count = 0, best = 0;
  for (long k = begin; k < end; ++k) {
    const long row = indices_load(k * indices_stride(0));
    if (row < 0 || row >= weight_size(0)) {
      FAULT;
      continue;
    }
    if (row == padding_idx) continue;
    C x = weight_load(row * weight_stride(0) + column * weight_stride(1));
#if HAS_per_sample_weights
    x *= per_sample_weights_load(k * per_sample_weights_stride(0));
#endif
    if (mode != 2) {
      acc += x;
    } else if (count == 0 || x > acc) {
      acc = x;
      best = row;
    }
    ++count;
  }
  out_store(i, mode == 1 && count > 0 ? acc / count : acc);
  if (mode == 2) largest_store(i, best);
  if (column == 0) bag_size_store(bag, count);
""",
)

# `low` is the number of offsets that are at most index `i`.
SEARCH = """
  long low = 0, high = offsets_numel;
  while (low < high) {
    const long middle = low + (high - low) / 2;
    if (offsets_load(middle * offsets_stride(0)) <= i) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
"""

OFFSET_TO_BAG = Step(
    over="indices",
    text=SEARCH + "  offset2bag_store(i, min(low, bag_size_numel) - 1);",
)

# A work-item computes one column of the table.
BACKWARD = Step(
    over="out",
    along=("0",),
    text="""
  const long rows = out_size(0);
  for (long k = 0; k < rows; ++k) out_store(k * out_stride(0) + i, 0);
#define GRAD(bag) grad_load((bag) * grad_stride(0) + i * grad_stride(1))
#define ADD(row, x) \\
    const long to = (row) * out_stride(0) + i; \\
    out_store(to, out_load(to) + (x));
#if maximum_indices_RANK == 2
  if (mode == 2) {
    for (long bag = 0; bag < grad_size(0); ++bag) {
      if (bag_size_load(bag * bag_size_stride(0)) == 0) continue;
      const long row = maximum_indices_load(bag * maximum_indices_stride(0) +
                                            i * maximum_indices_stride(1));
      if (row < 0 || row >= rows) {
        FAULT;
        continue;
      }
      ADD(row, GRAD(bag))
    }
    return;
  }
#endif
  const long n = indices_numel;
  for (long k = 0; k < n; ++k) {
    const long row = indices_load(k * indices_stride(0));
    if (row == padding_idx) continue;
    const long bag = offset2bag_load(k * offset2bag_stride(0));
    if (row < 0 || row >= rows || bag < 0 || bag >= grad_size(0)) {
      FAULT;
      continue;
    }
    C x = GRAD(bag);
#if HAS_per_sample_weights
    x *= per_sample_weights_load(k * per_sample_weights_stride(0));
#endif
    if (mode == 1) x /= bag_size_load(bag * bag_size_stride(0));
    ADD(row, x)
  }
""",
)

WEIGHTS_BACKWARD = Step(
    over="indices",
    text=SEARCH
    + """
  const long row = indices_load(i * indices_stride(0));
  const long bag = offset2bag_numel > 0 ? offset2bag_load(i * offset2bag_stride(0))
                                        : low - 1;
  if (row < 0 || row >= weight_size(0) || bag < 0 || bag >= grad_size(0)) {
    FAULT;
    return;
  }
  C sum = 0;
  const long columns = row == padding_idx ? 0 : weight_size(1);
  for (long c = 0; c < columns; ++c) {
    sum += grad_load(bag * grad_stride(0) + c * grad_stride(1)) *
           weight_load(row * weight_stride(0) + c * weight_stride(1));
  }
  out_store(i, sum);
""",
)

FAULT = (
    "embedding_bag: Expected idx >= 0 && idx < num_embeddings, and offsets from 0 to "
    "at most the number of indices"
)


def bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bags, the number of the bag of each index, the sizes of the bags without
    padding, and the rows of the largest elements. Raises RuntimeError for types or
    shapes that do not fit."""
    op, samples = torch.ops.aten._embedding_bag, per_sample_weights
    how = (scale_grad_by_freq, mode, sparse)
    last = (include_last_offset, padding_idx)
    if weight.numel() == 0 or (samples is not None and samples.dtype != weight.dtype):
        return op(weight, indices, offsets, *how, samples, *last)  # type: ignore[no-any-return]
    given = weight, indices, offsets, *how, samples, *last
    _C.meta_results("aten::_embedding_bag", "", *given)
    count = offsets.numel() - int(include_last_offset)
    type_ = torch.promote_types(indices.dtype, offsets.dtype)
    out = weight.new_empty(count, weight.shape[1])
    offset2bag = indices.new_empty(indices.numel(), dtype=type_)
    bag_size = offsets.new_empty(count, dtype=type_)
    like = out if mode == LARGEST else bag_size
    largest = torch.empty_like(like, dtype=type_)
    torch.ops.xpurt.embedding_bag(
        *(weight, indices, offsets, samples, mode, padding_idx),
        *(out, offset2bag, bag_size, largest),
    )
    return out, offset2bag, bag_size, largest


def bags_backward(
    grad: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient of the table. PyTorch's kernel computes the sparse one, and the one
    that is divided by the number of occurrences of an index. In PyTorch 2.13 the CPU
    kernel takes the count of another index if an index occurs twice, and the tiers have
    to agree."""
    if sparse or scale_grad_by_freq:
        return torch.ops.aten._embedding_bag_backward(  # type: ignore[no-any-return]
            *(grad, indices, offsets, offset2bag, bag_size, maximum_indices),
            *(num_weights, scale_grad_by_freq, mode, sparse),
            *(per_sample_weights, padding_idx),
        )
    if grad.numel() == 0:
        return grad.new_zeros(num_weights, grad.shape[1])
    if offset2bag.numel() == 0 and indices.numel() > 0:
        places = torch.arange(indices.numel(), device=grad.device)
        offset2bag = torch.bucketize(places, offsets, right=True) - 1
    out = grad.new_empty(num_weights, grad.shape[1])
    torch.ops.xpurt.embedding_bag_backward(
        *(grad, indices, offset2bag, bag_size, maximum_indices),
        *(per_sample_weights, mode, padding_idx, out),
    )
    return out


ROWS: tuple[CustomKernel | Decomposed, ...] = (
    CustomKernel(
        "xpurt::embedding_bag",
        (BAGS, OFFSET_TO_BAG),
        FLOATING_ONLY,
        schema="(Tensor weight, Tensor indices, Tensor offsets, "
        "Tensor? per_sample_weights, int mode, int padding_idx, Tensor(a!) out, "
        "Tensor(b!) offset2bag, Tensor(c!) bag_size, Tensor(d!) largest) -> ()",
        fault=FAULT,
    ),
    Decomposed("_embedding_bag", bags, FLOATING_ONLY),
    Decomposed("_embedding_bag_forward_only", bags, FLOATING_ONLY),
    Decomposed("_embedding_bag_backward", bags_backward, FLOATING_ONLY),
    CustomKernel(
        "xpurt::embedding_bag_backward",
        (BACKWARD,),
        FLOATING_ONLY,
        schema="(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, "
        "Tensor maximum_indices, Tensor? per_sample_weights, int mode, "
        "int padding_idx, Tensor(a!) out) -> ()",
        fault=FAULT,
    ),
    CustomKernel(
        "_embedding_bag_per_sample_weights_backward",
        (WEIGHTS_BACKWARD,),
        FLOATING_ONLY,
        fault=FAULT,
    ),
)
