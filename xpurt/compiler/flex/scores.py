"""The scores of `flex_attention`, as the ops that they consist of.

The formulas are those of `torch/_higher_order_ops/flex_attention.py`, which computes them
for all queries at once. Here they are those of any rows of the queries, and a block of
the mask that is not listed counts as masked, as for PyTorch's fused kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter

# A mask without blocks has one of this many rows and columns.
_WHOLE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class BlockMask:
    """The listed blocks of a mask, and the function that tells more of some of them.

    counts, columns: for each row of blocks how many are listed, and which; in these the
    function is asked. full_counts, full_columns: those that hide nothing, or None.
    """

    counts: Tensor
    columns: Tensor
    full_counts: Tensor | None
    full_columns: Tensor | None
    rows_of_block: int
    columns_of_block: int
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Attention:
    """What is given to one call, apart from its queries.

    key: [batch or 1, heads, keys, width]; value: [batch or 1, heads, keys, values].
    modify: the function of scores, of (score, batch, head, query, key, *captured).
    """

    key: Tensor
    value: Tensor
    modify: Callable[..., Any]
    mask: BlockMask
    scale: float
    captured: Sequence[Any]
    captured_by_mask: Sequence[Any]
    count: Any  # of all queries; it may be a symbol


@dataclass(frozen=True, slots=True)
class Scores:
    """Of some rows: [batch, heads, rows, keys].

    positions: of batches, heads, queries and keys, one dimension each.
    plain: before they are modified. modified: -inf where `shown` is False.
    """

    positions: tuple[Tensor, Tensor, Tensor, Tensor]
    plain: Tensor
    modified: Tensor
    shown: Tensor


def scores_of(given: Attention, query: Tensor, first: Tensor | None) -> Scores:
    """The scores of rows of the queries.

    query: [batch, query heads, rows, width]. first: the position of the first row, or
    None for all rows. Rows beyond the last one are computed like the last one.
    """
    batch, heads, rows, _ = query.shape
    exact = precise(query)
    plain = product(exact, precise(given.key).transpose(-2, -1)) * given.scale
    positions = tuple(
        torch.arange(size, device=query.device)
        for size in (batch, heads, rows, given.key.shape[-2])
    )
    b, h, row, n = positions
    m = row if first is None else (row + first).clamp(max=given.count - 1)
    positions = b, h, m, n
    suffix = (None,) * len(given.captured)
    modify = over_positions(given.modify, prefix=(0,), suffix=suffix)
    modified = modify(plain, *positions, *given.captured)
    shown = _shown(given, positions).expand(plain.shape)
    hidden = torch.where(shown, modified.to(plain.dtype), -torch.inf)
    return Scores(positions, plain, hidden, shown)


class _Mapped(Interpreter):
    """Runs a graph of Inductor's ops, of which vmap() knows all but this one. For others
    vmap() would add a node per score to the graph."""

    def call_function(
        self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if target is torch.ops.prims.convert_element_type.default:
            return args[0].to(args[1])
        return super().call_function(target, args, kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        found = super().output(target, args, kwargs)
        return list(found) if isinstance(found, list) else found  # as vmap() requires


def over_positions(function: Callable[..., Any], **dimensions: Any) -> Any:
    """A function of one score, or of its position, as one of all. Raises RuntimeError
    if it has an op without a batching rule."""
    from torch.nn.attention.flex_attention import _vmap_for_bhqkv

    if isinstance(function, GraphModule):
        function = _Mapped(function).run
    mapped = _vmap_for_bhqkv(function, **dimensions)

    def run(*given: Any) -> Any:
        functorch: Any = torch._C._functorch
        before = functorch._is_vmap_fallback_enabled()
        functorch._set_vmap_fallback_enabled(False)
        try:
            return mapped(*given)
        finally:
            functorch._set_vmap_fallback_enabled(before)

    return run


def precise(tensor: Tensor) -> Tensor:
    """In the type that scores are computed in."""
    is_double = tensor.dtype == torch.float64
    return tensor.to(torch.float64 if is_double else torch.float32)


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of [batch, query heads, rows, inner] and [batch or 1, heads, inner,
    columns], whose heads are each of several query heads: [batch, query heads, rows,
    columns]."""
    batch, heads, rows, inner = left.shape
    fewer = right.shape[1]
    joined = left.reshape(batch, fewer, heads // fewer * rows, inner)
    return (joined @ right).reshape(batch, heads, rows, right.shape[-1])


def product_of_rows(left: Tensor, right: Tensor, heads: int) -> Tensor:
    """The sum over rows and over the query heads of each of `heads` heads: [batch, query
    heads, rows, a] and [batch, query heads, rows, b] give [batch, heads, a, b]."""
    batch, more, rows, _ = left.shape
    joined = [
        each.reshape(batch, heads, more // heads * rows, each.shape[-1])
        for each in (left, right)
    ]
    return joined[0].transpose(-2, -1) @ joined[1]


def _shown(given: Attention, positions: tuple[Tensor, ...]) -> Tensor:
    mask = given.mask
    suffix = (None,) * len(given.captured_by_mask)
    function = over_positions(mask.function, prefix=(), suffix=suffix)
    asked: Tensor = function(*positions, *given.captured_by_mask)
    if mask.rows_of_block >= _WHOLE and mask.columns_of_block >= _WHOLE:
        return asked
    shown = asked & _listed(mask, mask.counts, mask.columns, positions)
    if mask.full_counts is not None and mask.full_columns is not None:
        full = _listed(mask, mask.full_counts, mask.full_columns, positions)
        shown = shown | full
    return shown


def _listed(
    mask: BlockMask, counts: Tensor, columns: Tensor, positions: tuple[Tensor, ...]
) -> Tensor:
    """Whether each position is in a listed block: [batch or 1, heads or 1, rows,
    keys]."""
    _, _, m, n = positions
    width = columns.shape[-1]
    order = torch.arange(width, device=columns.device)
    # What is behind the listed ones goes to a column that is left out.
    where = torch.where(order < counts[..., None], columns, width).to(torch.int64)
    none = where.new_zeros(*columns.shape[:-1], width + 1, dtype=torch.bool)
    blocks = none.scatter(-1, where, True)[..., :width]
    rows = blocks.index_select(-2, m // mask.rows_of_block)
    return rows.index_select(-1, n // mask.columns_of_block)
