"""How DTensor shards the fused attention of CPU and xpu tensors.

PyTorch has such rules for the attentions of CUDA alone. Batches and heads do not depend
on each other, so both may be sharded.
"""

from types import ModuleType
from typing import Any

import torch

BATCH, HEADS = 0, 1

aten = torch.ops.aten
FORWARD = aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
RESULTS = {FORWARD: 2, BACKWARD: 3}
# The first of query, key and value among the operands, which begin with the gradient.
QUERY = {FORWARD: 0, BACKWARD: 1}
OPERANDS = {FORWARD: 3, BACKWARD: 6}


def change(dtensor: ModuleType) -> None:
    """Adds the rules to the module ``torch.distributed.tensor``."""
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
    from torch.distributed.tensor._ops.utils import register_op_strategy

    with_mask = RuntimeSchemaInfo(static_kwargkey=["attn_mask"])
    register_op_strategy([FORWARD, BACKWARD], schema_info=with_mask)(strategy)


def strategy(schema: Any) -> Any:
    """The possible placements of results and operands on a mesh.

    DTensor moves operands to the placement that costs least, but never the mask: it is a
    keyword. Raises NotImplementedError if none fits that of the mask.
    """
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor._op_schema import OpStrategy
    from torch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy

    op, masks = schema.op, schema.kwargs_strategy
    tensors = RESULTS[op] + OPERANDS[op]
    query, key = schema.args_schema[QUERY[op]], schema.args_schema[QUERY[op] + 1]
    placements: list[Any] = [[Replicate()] * (tensors + len(masks))]
    for dimension in (BATCH, HEADS):
        if query.shape[dimension] != key.shape[dimension]:
            continue  # heads in groups
        placements.append([Shard(dimension)] * tensors)
        for mask in masks:
            wide = mask.ndim == 4 and mask.shape[dimension] != 1
            placements[-1].append(Shard(dimension) if wide else Replicate())
    mesh = schema.get_mesh_from_args(validate=False)
    found: Any = expand_to_full_mesh_op_strategy(
        mesh, schema, placements, input_index=RESULTS[op]
    )
    if not masks:
        return found
    given = masks[0].strategies[0].output_spec.placements
    fitting = [
        each for each in found.strategies if each.input_specs[-1].placements == given
    ]
    if not fitting:
        raise NotImplementedError(
            f"attention takes a mask that is replicated, or sharded by batches or heads; "
            f"found {given} of the shape {tuple(masks[0].shape)}. Redistribute the mask."
        )
    return OpStrategy(fitting)
