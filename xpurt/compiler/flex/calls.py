"""The calls of `flex_attention` and of its gradient, with PyTorch's arguments."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from xpurt.compiler.flex import blocks, rows
from xpurt.compiler.flex.scores import Attention, BlockMask


def attended(
    query: Tensor, key: Tensor, value: Tensor, score: Any, mask: Any, scale: float,
    options: Any, captured: Any, by_mask: Any, *, wanted: Sequence[bool],
) -> list[Tensor]:  # fmt: skip
    """The result, the logarithms of the sums and the greatest scores, of base 2."""
    given = _call(query, key, value, score, mask, scale, captured, by_mask)
    at_a_time = _rows(given, query)
    if at_a_time is None:
        return list(rows.attend(given, query, None))
    return list(blocks.attend_in_blocks(given, query, at_a_time))


def differentiated(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, logarithms: None,
    of_out: Tensor | None, of_logarithms: Tensor | None, score: Any, joint: Any,
    mask: Any, scale: float, options: Any, captured: Any, by_mask: Any, *,
    wanted: Sequence[bool],
) -> list[Tensor | None]:  # fmt: skip
    """The gradients of query, key and value, and of the captured tensors."""
    given = _call(query, key, value, score, mask, scale, captured, by_mask)
    of_out = torch.zeros_like(out) if of_out is None else of_out
    upstream = rows.Upstream(out, of_out, of_logarithms)
    at_a_time = _rows(given, query)
    if at_a_time is None:
        found = rows.differentiate(given, joint, query, None, upstream)
    else:
        found = blocks.differentiate_in_blocks(
            given, joint, query, upstream, at_a_time, wanted[3:]
        )
    # One key of all batches has their sum.
    is_one = key.shape[0] != query.shape[0]
    of_inputs = [
        each.sum(0, keepdim=True) if is_one else each
        for each in (found.of_key, found.of_value)
    ]
    return [found.of_query, *of_inputs, *found.of_captured]


def _call(
    query: Tensor, key: Tensor, value: Tensor, score: Any, mask: Any, scale: float,
    captured: Any, by_mask: Any,
) -> Attention:  # fmt: skip
    counts, columns, full_counts, full_columns = mask[2:6]
    *_, rows_of_block, columns_of_block, function = mask
    listed = BlockMask(
        counts,
        columns,
        full_counts,
        full_columns,
        int(rows_of_block),
        int(columns_of_block),
        function,
    )
    return Attention(
        key, value, score, listed, scale, captured, by_mask, query.shape[2]
    )


def _rows(given: Attention, query: Tensor) -> int | None:
    """How many queries are computed at a time, by the sizes of the first call; None for
    all of them."""
    batch, heads, count, _ = (hint(size) for size in query.shape)
    return blocks.rows_at_a_time(batch * heads * hint(given.key.shape[2]), count)


def hint(size: int | torch.SymInt) -> int:
    """The size in the first call."""
    return int(size.node.hint) if isinstance(size, torch.SymInt) else size
