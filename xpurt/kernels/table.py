"""Every row; its position here is its number in kernel keys."""

from xpurt.kernels import (
    activations,
    alignment,
    attention,
    binary,
    channel_norm,
    convolution,
    counting,
    decomposed,
    distances,
    distinct,
    embedding_bags,
    extremes,
    grid_sampling,
    group_norm,
    indexing,
    losses,
    moments,
    normalization,
    optimizers,
    padding,
    pooling,
    products,
    random,
    ranges,
    rearranging,
    recurrent,
    reductions,
    scans,
    scattering,
    several_results,
    shuffles,
    sorting,
    special,
    ternary,
    unary,
    unfolding,
    unpooling,
    upsampling,
)
from xpurt.kernels.attention import Attention
from xpurt.kernels.cost_classes import cost_class
from xpurt.kernels.custom_kernel import CustomKernel
from xpurt.kernels.decomposed import Decomposed
from xpurt.kernels.recurrent import Recurrent
from xpurt.kernels.row import Matmul, Reduction, Row, Softmax

AnyRow = (
    Row
    | Reduction
    | Softmax
    | Matmul
    | CustomKernel
    | Decomposed
    | Attention
    | Recurrent
)

ROWS: tuple[AnyRow, ...] = (
    *unary.ROWS,
    *binary.ROWS,
    *ternary.ROWS,
    *activations.ROWS,
    *reductions.ROWS,
    *scans.ROWS,
    *normalization.ROWS,
    *channel_norm.ROWS,
    *group_norm.ROWS,
    *pooling.ROWS,
    *unfolding.ROWS,
    *unpooling.ROWS,
    *upsampling.ROWS,
    *grid_sampling.ROWS,
    *convolution.ROWS,
    *attention.ROWS,
    *decomposed.ROWS,
    *distinct.ROWS,
    *products.ROWS,
    *moments.ROWS,
    *sorting.ROWS,
    *extremes.ROWS,
    *rearranging.ROWS,
    *ranges.ROWS,
    *padding.ROWS,
    *counting.ROWS,
    *indexing.ROWS,
    *scattering.ROWS,
    *embedding_bags.ROWS,
    *special.ROWS,
    *losses.ROWS,
    *alignment.ROWS,
    *distances.ROWS,
    *several_results.ROWS,
    *recurrent.ROWS,
    *shuffles.ROWS,
    *optimizers.ROWS,
    *random.ROWS,
)


def dtypes_of(row: AnyRow) -> str:
    """Letters of the types it computes in."""
    return row.dtypes if isinstance(row, Row) else row.kind.dtypes


def described(index: int, row: AnyRow) -> dict[str, object]:
    """A row as C++ takes it: what rows of every kind have, and what those of its kind
    have besides."""
    return {
        "index": index,
        "kind": row.template,
        "name": row.aten,
        "dtypes": dtypes_of(row),
        "flops": row.flops,
        "cost_class": cost_class(row),
        "overloads": list(getattr(row, "overloads", ())),
        **row.described(),
    }
