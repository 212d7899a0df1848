"""Every row. The position of a row here is its number in kernel keys."""

from xpurt.kernels.kinds import decomposed
from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import Matmul, Reduction, Row, Softmax
from xpurt.kernels.rows import (
    assertions,
    binary,
    complex_parts,
    counting,
    distances,
    distinct,
    extremes,
    fourier,
    indexing,
    moments,
    products,
    random,
    ranges,
    rearranging,
    reductions,
    scans,
    scattering,
    several_results,
    sorting,
    special,
    ternary,
    unary,
)
from xpurt.kernels.rows.cost_classes import cost_class
from xpurt.kernels.rows.linear_algebra import (
    cholesky,
    exponential,
    lu,
    panels,
    solutions,
    triangular,
)
from xpurt.kernels.rows.nn import (
    activations,
    alignment,
    attention,
    channel_norm,
    convolution,
    embedding_bags,
    encoder_layers,
    fused,
    grid_sampling,
    group_norm,
    losses,
    normalization,
    optimizers,
    padding,
    pooling,
    recurrent,
    shuffles,
    unfolding,
    unpooling,
    upsampling,
    weight_norm,
)
from xpurt.kernels.rows.nn.attention import Attention
from xpurt.kernels.rows.nn.recurrent import Recurrent

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
    *complex_parts.ROWS,
    *weight_norm.ROWS,
    *encoder_layers.ROWS,
    *panels.ROWS,
    *triangular.ROWS,
    *cholesky.ROWS,
    *lu.ROWS,
    *solutions.ROWS,
    *exponential.ROWS,
    *fourier.ROWS,
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
    *fused.ROWS,
    *shuffles.ROWS,
    *optimizers.ROWS,
    *random.ROWS,
    *assertions.ROWS,
)


def dtypes_of(row: AnyRow) -> str:
    """Letters of the types of the row's computation."""
    return row.dtypes if isinstance(row, Row) else row.kind.dtypes


def described(index: int, row: AnyRow) -> dict[str, object]:
    """A row in the form that C++ reads: the keys of every kind, and those of its own
    kind."""
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
