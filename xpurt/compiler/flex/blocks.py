"""Attention in blocks of queries.

Note [Blocks of queries]
~~~~~~~~~~~~~~~~~~~~~~~~
All scores of a call at once take memory that grows with the square of the length. So
where they are many, a loop of the compiled program computes those of a block of queries
at a time: a `while_loop`, whose body is compiled once. It carries the block's number, the
results, which each block is written into, and, in a gradient, the sums over blocks: in
float32, since there are many. Rejected: a block after the other in one graph, which is
compiled for each; PyTorch's `scan`, which needs scalars of traced tensors in the graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from xpurt.compiler.flex.rows import Gradients, Upstream, attend, differentiate
from xpurt.compiler.flex.scores import Attention, precise

# Scores that are in memory at once: 32 MB of float32.
_SCORES: Final = 1 << 23
_FEWEST_ROWS: Final = 16

Operands = tuple[Any, ...]


def attend_in_blocks(
    given: Attention, query: Tensor, rows: int
) -> tuple[Tensor, Tensor, Tensor]:
    """attend() of all queries, `rows` at a time."""
    operands, rebuild = _operands(given)
    divided = _divided(query, rows)
    sizes = divided.shape[:-1]
    results = [
        query.new_empty(*sizes, given.value.shape[-1]),
        query.new_empty(sizes, dtype=torch.float32),
        query.new_empty(sizes, dtype=torch.float32),
    ]

    def block(number: Tensor, results: Operands, rest: Operands) -> list[Tensor]:
        all_rows, *operands = rest
        found = attend(rebuild(operands), _block(all_rows, number), number * rows)
        return _written(results, number, found)

    made = _loop(block, results, (divided, *operands), divided.shape[0])
    out, logarithms, greatest = (_joined(each, given.count) for each in made)
    return out, logarithms, greatest


def differentiate_in_blocks(
    given: Attention,
    joint: Callable[..., Any],
    query: Tensor,
    upstream: Upstream,
    rows: int,
    wanted: Sequence[bool],
) -> Gradients:
    """differentiate() of all queries, `rows` at a time. wanted: of which captured
    tensors."""
    operands, rebuild = _operands(given)
    of_rows = [query, upstream.out, upstream.of_out]
    if upstream.of_logarithms is not None:
        of_rows.append(upstream.of_logarithms)
    divided = [_divided(each, rows) for each in of_rows]
    batch, (_, heads, keys, _) = query.shape[0], given.key.shape
    sums = [
        query.new_zeros(batch, heads, keys, each.shape[-1], dtype=precise(query).dtype)
        for each in (given.key, given.value)
    ]
    sums += [
        torch.zeros_like(precise(each), memory_format=torch.contiguous_format)
        for each in _wanted(given.captured, wanted)
    ]

    def block(number: Tensor, carried: Operands, rest: Operands) -> list[Tensor]:
        of_query, *sums = carried
        now = [_block(each, number) for each in rest[: len(divided)]]
        of_block = Upstream(now[1], now[2], now[3] if len(now) > 3 else None)
        call = rebuild(rest[len(divided) :])
        found = differentiate(call, joint, now[0], number * rows, of_block)
        of_captured = _wanted(found.of_captured, wanted)
        added = [found.of_key, found.of_value, *of_captured]
        after = [one + other for one, other in zip(sums, added, strict=True)]
        return [*_written([of_query], number, [found.of_query]), *after]

    carried = [torch.empty_like(divided[0], memory_format=torch.contiguous_format)]
    made = _loop(block, [*carried, *sums], (*divided, *operands), divided[0].shape[0])
    of_query, of_key, of_value, *of_captured = made
    each_made = iter(of_captured)
    return Gradients(
        of_query=_joined(of_query, given.count),
        of_key=of_key,
        of_value=of_value,
        of_captured=[next(each_made) if is_wanted else None for is_wanted in wanted],
    )


def _loop(
    block: Callable[[Tensor, Operands, Operands], list[Tensor]],
    carried: Sequence[Tensor],
    operands: Operands,
    count: Any,
) -> Sequence[Tensor]:
    """What is carried after `count` blocks."""

    def goes_on(number: Tensor, *_: Any) -> Tensor:
        return torch.lt(number, count)

    def body(number: Tensor, *rest: Any) -> list[Tensor]:
        found = block(number, rest[: len(carried)], rest[len(carried) :])
        return [number + 1, *found]

    first = torch.zeros((), dtype=torch.int64, device=carried[0].device)
    loop: Any = torch.ops.higher_order.while_loop
    made: Sequence[Tensor] = loop(goes_on, body, (first, *carried), operands)[1:]
    return made


def _block(divided: Tensor, number: Tensor) -> Tensor:
    return divided.index_select(0, number[None]).squeeze(0)


def _written(
    results: Sequence[Tensor], number: Tensor, found: Sequence[Tensor]
) -> list[Tensor]:
    """The results, with a block written into each, which copies nothing else."""
    return [
        each.index_put_((number[None],), block[None].to(each.dtype))
        for each, block in zip(results, found, strict=True)
    ]


def rows_at_a_time(scores_per_row: int, count: int) -> int | None:
    """How many of `count` queries are computed at a time; None for all of them."""
    rows = max(_SCORES // max(scores_per_row, 1), _FEWEST_ROWS)
    return None if rows >= count else rows - rows % _FEWEST_ROWS


def _wanted(values: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    return [each for each, is_wanted in zip(values, wanted, strict=True) if is_wanted]


def _divided(tensor: Tensor, rows: int) -> Tensor:
    """[batch, heads, queries, ...] as [blocks, batch, heads, rows, ...], with zeros
    behind the last query."""
    count = tensor.shape[2]
    blocks = (count + rows - 1) // rows
    behind = [0, 0] * (tensor.dim() - 3) + [0, blocks * rows - count]
    padded = torch.constant_pad_nd(tensor, behind, 0)
    divided = padded.reshape(*tensor.shape[:2], blocks, rows, *tensor.shape[3:])
    return divided.movedim(2, 0)


def _joined(blocks: Tensor, count: Any) -> Tensor:
    """The inverse of _divided()."""
    return blocks.movedim(0, 2).flatten(2, 3)[:, :, :count]


def _operands(
    given: Attention,
) -> tuple[tuple[Any, ...], Callable[[Sequence[Any]], Attention]]:
    """The values of a call that a loop takes as operands, and what makes the call of
    them again."""
    mask = given.mask
    values = (
        (given.key, given.value, given.count, given.captured, given.captured_by_mask),
        (mask.counts, mask.columns, mask.full_counts, mask.full_columns),
    )
    leaves, form = pytree.tree_flatten(values)
    places = [
        i for i, each in enumerate(leaves) if isinstance(each, Tensor | torch.SymInt)
    ]

    def rebuild(operands: Sequence[Any]) -> Attention:
        made = list(leaves)
        for place, operand in zip(places, operands, strict=True):
            made[place] = operand
        of_call, of_mask = pytree.tree_unflatten(made, form)
        key, value, count, captured, captured_by_mask = of_call
        counts, columns, full_counts, full_columns = of_mask
        return replace(
            given,
            key=key,
            value=value,
            count=count,
            captured=captured,
            captured_by_mask=captured_by_mask,
            mask=replace(
                mask,
                counts=counts,
                columns=columns,
                full_counts=full_counts,
                full_columns=full_columns,
            ),
        )

    return tuple(leaves[place] for place in places), rebuild
