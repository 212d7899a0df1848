"""paged_attention: attention of one new token per sequence, whose keys and values lie in
blocks of a common cache (Kwon et al., Efficient memory management for large language model
serving with PagedAttention, 2023).

Position t of sequence b is in the block `block_tables[b, t // block_size]`, at
`t % block_size`. With fewer heads of keys than of queries, adjacent heads of queries share
one (grouped queries: Ainslie et al., 2023).
"""

from typing import Any, Final, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor

from xpurt.fused_ops.definition import define
from xpurt.fused_ops.operands import (
    computed_in,
    require,
    require_floating,
    require_same_device,
    require_same_type,
    sizes,
    with_adjacent_elements,
)

_OP = "paged_attention"
_GROUP: Final = 16  # positions whose scores one sub-group computes


def _check(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    context_lengths: Tensor,
) -> None:
    require_floating(_OP, "query", query)
    require_same_device(
        _OP,
        query=query,
        key_cache=key_cache,
        value_cache=value_cache,
        block_tables=block_tables,
        context_lengths=context_lengths,
    )
    require_same_type(_OP, query=query, key_cache=key_cache, value_cache=value_cache)
    require(
        query.dim() == 3
        and key_cache.dim() == 4
        and value_cache.shape == key_cache.shape
        and key_cache.shape[3] == query.shape[2],
        f"{_OP} has a query (sequences, heads, size) and caches (blocks, block_size, "
        f"kv_heads, size); found a query {sizes(query)}, a key_cache {sizes(key_cache)} "
        f"and a value_cache {sizes(value_cache)}",
    )
    kv_heads = key_cache.shape[2]
    require(
        kv_heads > 0 and query.shape[1] % kv_heads == 0,
        f"{_OP} gives each head of keys the same number of heads of queries; found "
        f"{query.shape[1]} heads of queries and {kv_heads} of keys",
    )
    require(
        block_tables.dim() == 2
        and context_lengths.dim() == 1
        and block_tables.shape[0] == query.shape[0]
        and context_lengths.shape[0] == query.shape[0],
        f"{_OP} has block_tables (sequences, blocks) and context_lengths (sequences) for "
        f"{query.shape[0]} sequences; found {sizes(block_tables)} and "
        f"{sizes(context_lengths)}",
    )
    for name, each in (
        ("block_tables", block_tables),
        ("context_lengths", context_lengths),
    ):
        if each.dtype not in (torch.int32, torch.int64):
            raise TypeError(
                f"{_OP} has `{name}` of torch.int32 or torch.int64; found {each.dtype}"
            )


def _on_cpu(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    context_lengths: Tensor,
    scale: float,
) -> Tensor:
    out = _fake(query, key_cache, value_cache, block_tables, context_lengths, scale)
    blocks, block_size = key_cache.shape[:2]
    slots = block_tables.shape[1] * block_size
    for b, length in enumerate(context_lengths.tolist()):
        if not 0 <= length <= slots:
            raise IndexError(
                f"{_OP}: the context of sequence {b} has {length} tokens; its "
                f"{block_tables.shape[1]} blocks hold {slots}"
            )
        table = block_tables[b, : -(-length // block_size)].long()
        if bool(((table < 0) | (table >= blocks)).any()):
            raise IndexError(
                f"{_OP}: sequence {b} has the blocks {table.tolist()}; the cache has "
                f"{blocks}, numbered from 0"
            )
        keys, values = (
            cache[table].flatten(0, 1)[:length].transpose(0, 1)
            for cache in (key_cache, value_cache)
        )
        # (kv_heads, heads that share, size): the queries of a head are rows of a product.
        rows = query[b].reshape(keys.shape[0], -1, keys.shape[2])
        out[b] = F.scaled_dot_product_attention(
            rows.unsqueeze(0), keys.unsqueeze(0), values.unsqueeze(0), scale=scale
        )[0].flatten(0, 1)
    return out


def _on_xpu(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    context_lengths: Tensor,
    scale: float,
) -> Tensor:
    out = _fake(query, key_cache, value_cache, block_tables, context_lengths, scale)
    if not out.numel():
        return out
    slots = block_tables.shape[1] * key_cache.shape[1]
    if not slots:
        return out.zero_()
    scores = torch.empty(
        (*query.shape[:2], -(-slots // _GROUP), _GROUP),
        dtype=computed_in(query.dtype),
        device=query.device,
    )
    operands = (
        with_adjacent_elements(each) for each in (query, key_cache, value_cache)
    )
    torch.ops.xpurt.paged_attention_out(
        *operands, block_tables, context_lengths, scale, scores, out
    )
    return out


def _fake(
    query: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    block_tables: Tensor,
    context_lengths: Tensor,
    scale: float,
) -> Tensor:
    """The result without its values, for operands that fit."""
    _check(query, key_cache, value_cache, block_tables, context_lengths)
    return torch.empty(query.shape, dtype=query.dtype, device=query.device)


def _gradient(ctx: Any, grad: Tensor) -> NoReturn:
    raise NotImplementedError(
        f"{_OP} is for decoding and has no gradient. Call it under torch.no_grad(); to "
        "train, call torch.nn.functional.scaled_dot_product_attention with the whole "
        "sequences"
    )


def define_op() -> None:
    define(
        f"{_OP}(Tensor query, Tensor key_cache, Tensor value_cache, "
        "Tensor block_tables, Tensor context_lengths, float scale) -> Tensor",
        cpu=_on_cpu,
        xpu=_on_xpu,
        fake=_fake,
        gradient=_gradient,
    )
