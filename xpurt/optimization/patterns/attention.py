"""Attention (Vaswani and others, Attention is all you need, 2017), where a model writes it
in ops."""

import math
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import Node
from torch.nn import functional as F

from xpurt.functional.attention import attention as fused_attention
from xpurt.functional.attention import broadcasts_to_scores
from xpurt.optimization.patterns.graph_calls import (
    arguments,
    cast_of,
    dtype_of,
    name_of,
    operands,
)
from xpurt.optimization.patterns.pattern import Match, Parameters, Pattern

# In bfloat16, PyTorch's op takes 0.3 to 0.8 of the time of the separate ops with 8 to 32
# queries of 128 keys, but 1.1 to 1.5 with 64 and more, and 1.7 to 1.9 with one of 512 keys
# (processor time of one thread, AMD EPYC without AMX, 2026-11-26). In float32 it takes 0.5
# to 0.9.
_MOST_QUERIES_IN_LOWER_TYPES: Final = 32
_MOST_KEYS_PER_QUERY_IN_LOWER_TYPES: Final = 16


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    is_filled: bool,
    scale: Any,
    divisor: Any,
    softmax_dtype: torch.dtype | None,
    is_cast_back: bool,
) -> Tensor:
    """softmax(q k^T * scale / divisor + mask) v. q, k, v: (batch, heads, tokens, size).

    is_filled: the mask is true where there is no attention, instead of being added.
    softmax_dtype, is_cast_back: of the softmax, and whether its result then has the type
    of q.
    """
    if _fits(q, k, v, mask, is_filled, scale, divisor):
        allowed = ~mask if is_filled and mask is not None else mask
        return fused_attention(q, k, v, attn_mask=allowed, scale=scale / divisor)
    scores = q @ k.transpose(-2, -1) * scale / divisor
    if mask is not None and is_filled:
        scores = scores.masked_fill(mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    weights = F.softmax(scores, -1, dtype=softmax_dtype)
    return (weights.to(q.dtype) if is_cast_back else weights) @ v


def _fits(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    is_filled: bool,
    scale: Any,
    divisor: Any,
) -> bool:
    """Whether PyTorch's op computes the same, and in less time."""
    if not isinstance(scale, float | int) or not isinstance(divisor, float | int):
        return False
    if not (q.dim() == k.dim() == v.dim() == 4 and q.numel() and k.numel()):
        return False
    dtype, kind = q.dtype, q.device.type
    if torch.is_autocast_enabled(kind) and dtype != torch.get_autocast_dtype(kind):
        return False
    same = (
        q.shape[:2] == k.shape[:2]
        and k.shape == v.shape
        and q.shape[3] == k.shape[3]
        and dtype == k.dtype == v.dtype
    )
    if not same or not (dtype == torch.float32 or _gains_in_lower_type(q, k)):
        return False
    return mask is None or _is_mask(mask, is_filled, q, k)


def _gains_in_lower_type(q: Tensor, k: Tensor) -> bool:
    queries, keys = q.shape[2], k.shape[2]
    return (
        q.dtype.itemsize == 2
        and queries <= _MOST_QUERIES_IN_LOWER_TYPES
        and keys <= queries * _MOST_KEYS_PER_QUERY_IN_LOWER_TYPES
    )


def _is_mask(mask: Tensor, is_filled: bool, q: Tensor, k: Tensor) -> bool:
    wanted = torch.bool if is_filled else q.dtype
    return (
        type(mask) is Tensor
        and mask.dtype == wanted
        and mask.dim() in (2, 4)
        and broadcasts_to_scores(mask, q, k.shape[2])
    )


def _find(node: Node, parameters: Parameters) -> Match | None:
    if name_of(node) != "matmul" or len(node.args) != 2 or node.kwargs:
        return None
    weights: Any
    weights, v = node.args
    nodes: list[Any] = [node]
    cast_to = None
    if (cast := cast_of(weights)) is not None:
        nodes.append(weights)
        weights, cast_to = cast
    given = None
    if name_of(weights) == "softmax":
        given = arguments(weights, "input", "dim", "_stacklevel", "dtype")
    if given is None or given.get("dim") != -1:
        return None
    softmax_dtype = given.get("dtype")
    if softmax_dtype not in (None, torch.float32):
        return None
    nodes.append(weights)
    for scores, mask, is_filled, masking in _masked(given["input"]):
        found = _scores(scores)
        if found is None:
            continue
        q, k, scale, divisor, product = found
        if cast_to is not None and cast_to != dtype_of(q):
            continue
        taken = [*nodes, *masking, *product]
        args = (
            q, k, v, mask, is_filled, scale, divisor, softmax_dtype, cast_to is not None,
        )  # fmt: skip
        return Match(tuple(sorted(set(taken))), attention, args)
    return None


def _masked(node: Any) -> list[tuple[Any, Any, bool, list[Node]]]:
    """The scores, the mask, whether it is filled in, and the nodes: each reading of the
    node that there is."""
    readings: list[tuple[Any, Any, bool, list[Node]]] = [(node, None, False, [])]
    readings += [
        (scores, mask, False, [node])
        for scores, mask in operands(node, "add")
        if isinstance(mask, Node)
    ]
    if name_of(node) == "masked_fill":
        given = arguments(node, "input", "mask", "value")
        if given is not None and given.get("value") == -math.inf:
            readings.append((given["input"], given["mask"], True, [node]))
    return readings


def _scores(node: Any) -> tuple[Any, Any, Any, Any, list[Node]] | None:
    """q, k, the scale, the divisor and the nodes of q k^T * scale / divisor."""
    if name_of(node) == "matmul":
        return _product(node, 1.0, 1.0, [node])
    if name_of(node) == "div" and len(node.args) == 2 and not node.kwargs:
        product, divisor = node.args
        return _product(product, 1.0, divisor, [product, node])
    for product, scale in operands(node, "mul"):
        found = _product(product, scale, 1.0, [product, node])
        if found is not None:
            return found
    return None


def _product(
    node: Any, scale: Any, divisor: Any, nodes: list[Node]
) -> tuple[Any, Any, Any, Any, list[Node]] | None:
    if name_of(node) != "matmul" or len(node.args) != 2 or node.kwargs:
        return None
    q, transposed = node.args
    if name_of(transposed) != "transpose" or transposed.kwargs:
        return None
    k, *axes = transposed.args
    if sorted(axes) not in ([-2, -1], [2, 3]):
        return None
    taken = [*nodes, transposed]
    if scale == 1.0 and divisor == 1.0:  # some scale the queries
        for inner, factor in operands(q, "mul"):
            if isinstance(factor, float | int):
                return inner, k, factor, 1.0, [*taken, q]
    return q, k, scale, divisor, taken


ATTENTION = Pattern(
    "attention",
    "softmax(q @ k.transpose(-2, -1) * scale + mask, -1) @ v",
    "F.scaled_dot_product_attention(q, k, v, mask, scale=scale)",
    _find,
)
