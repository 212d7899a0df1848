"""Every row; its position here is its number in kernel keys."""

from dataclasses import asdict

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
from xpurt.kernels.decomposed import Decomposed
from xpurt.kernels.recurrent import Recurrent
from xpurt.kernels.row import Matmul, Reduction, Row, Softmax
from xpurt.kernels.steps import Steps

AnyRow = Row | Reduction | Softmax | Matmul | Steps | Decomposed | Attention | Recurrent

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


def mask(numbers: set[int] | tuple[int, ...]) -> int:
    return sum(1 << k for k in numbers)


def dtypes_of(row: AnyRow) -> str:
    """Letters of the types it computes in."""
    return row.dtypes if isinstance(row, Row) else row.kind.dtypes


def described(index: int, row: AnyRow) -> dict[str, object]:
    """A row as C++ takes it."""
    pointwise = row if isinstance(row, Row) else None
    steps = row if isinstance(row, Steps) else None
    variants = list(pointwise.expressions) if pointwise else [""]
    return {
        "index": index,
        "kind": row.template,
        "name": row.aten,
        "dtypes": dtypes_of(row),
        "compute": row.kind.compute,
        "result": row.kind.result,
        "flops": row.flops,
        "cost_class": cost_class(row),
        "conditions": mask(pointwise.conditions) if pointwise else 0,
        "uses": mask(pointwise.uses) if pointwise else 0,
        "zero_dim": mask(pointwise.zero_dim) if pointwise else 0,
        "leading": pointwise.leading if pointwise else 0,
        "same_type": getattr(row, "same_type", False),
        "raises_on_zero": pointwise.raises_on_zero if pointwise else False,
        "raises_on_negative": pointwise.raises_on_negative if pointwise else False,
        "raises_on_empty": (
            steps.leaves_empty if steps else getattr(row, "raises_on_empty", False)
        ),
        "params": pointwise.params if pointwise else [],
        "variants": [] if variants == [""] else variants,
        "ignored": list(pointwise.ignored) if pointwise else [],
        "steps": [step.described() for step in steps.steps] if steps else [],
        "scratch": [asdict(each) for each in steps.scratch] if steps else [],
        "begins_as": steps.begins_as if steps else "",
        "like": steps.like if steps else "",
        "contiguous": list(steps.contiguous) if steps else [],
        "rows": list(steps.rows) if steps else [],
        "dense": list(steps.dense) if steps else [],
        "results": [asdict(each) for each in steps.laid_out_results] if steps else [],
        "draws": steps.draws if steps else False,
        "fault": steps.fault if steps else "",
        "primitive": steps.primitive if steps else "",
        "overloads": list(getattr(row, "overloads", ())),
    }
