"""Attention by products of panels, for CPU tensors and for xpu tensors in memory of the
host.

Note [Where attention by panels pays]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
As of linear layers, the rule is of the processor and the shape alone: see Note [Where
products of panels pay]. With AVX2, in float32, one thread (AMD EPYC of Zen 3, processor
time, beside other programs, 2026-11-30), over PyTorch's kernel: 0.56 to 0.79 with a causal
mask, 0.74 to 0.97 without, 1.24 to 1.65 with 8 and 16 queries. With AVX-512 (AMD EPYC of
Zen 4, 2026-11-30): 0.51 to 0.66, and 0.77 to 0.86. The largest error was 0.8 to 1.25 of that
of PyTorch's kernel.

Gradients, of 64 queries and more, took 0.57 to 0.99 with AVX2 and 0.58 to 0.95 with AVX-512
(both on Zen 4), 0.96 to 1.15 with 32.

bfloat16 is computed in float32 and rounded once. It took 0.53 to 0.84 of the time of PyTorch's
kernel, which multiplies in bfloat16, and gradients 0.09 to 0.85, with smaller errors (both on
Zen 4). With AMX, which multiplies bfloat16 several times as fast, it is left to PyTorch.
"""

import math
from functools import cache
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt.functional.winograd import BLOCKS, is_memory_of_host

# As in csrc/rows/attention_panels.cpp.
_FEWEST_QUERIES: Final = 32


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """F.scaled_dot_product_attention of the same arguments, by panels where they take
    less time and no gradient is asked for."""
    if (
        enable_gqa
        and not is_causal
        and _is_token_of_groups(query, key, value, attn_mask)
    ):
        return _token_of_groups(query, key, value, attn_mask, dropout_p, scale)
    kind = query.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        query, key, value = (_cast(each, dtype) for each in (query, key, value))
        attn_mask = None if attn_mask is None else _cast(attn_mask, dtype)
    if (
        dropout_p == 0
        and not torch.is_grad_enabled()
        and takes_attention(query, key, value, attn_mask, is_causal)
    ):
        op = torch.ops.xpurt.panel_attention.default
        factor = query.shape[3] ** -0.5 if scale is None else scale
        added = None if attn_mask is None else _added_form(attn_mask)
        out: Tensor = op(query, key, value, added, is_causal, factor)[0]
        return out
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale,
        enable_gqa=enable_gqa,
    )  # fmt: skip


def _is_token_of_groups(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> bool:
    """Of CPU tensors: the op of xpu tensors does the same, see Note [A token's grouped
    heads]."""
    if query.device.type != "cpu" or not query.dim() == key.dim() == value.dim() == 4:
        return False
    heads, groups = query.shape[1], key.shape[1]
    return (
        query.shape[2] == 1
        and 0 < groups < heads
        and heads % groups == 0
        and value.shape[1] == groups
        and (
            mask is None
            or (mask.dim() == 4 and mask.shape[2] == 1 and mask.shape[1] in (1, heads))
        )
    )


def _token_of_groups(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout_p: float,
    scale: float | None,
) -> Tensor:
    """The heads of a group are queries of one head, whose keys are read once."""
    groups = key.shape[1]
    if mask is not None and mask.shape[1] > 1:
        mask = mask.reshape(len(mask), groups, -1, mask.shape[3])
    queries = query.reshape(len(query), groups, -1, query.shape[3])
    out = attention(queries, key, value, mask, dropout_p, scale=scale)
    return out.flatten(1, 2).unsqueeze(2)


def _cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """As autocast casts an argument of the op."""
    return x.to(dtype) if x.is_floating_point() and x.dtype != torch.float64 else x


def takes_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
) -> bool:
    """Whether `xpurt::panel_attention` computes this, and is expected to take less time
    than PyTorch's kernel."""
    if not BLOCKS or query.dim() != 4 or key.dim() != 4 or not query.numel():
        return False
    if not query.dtype == key.dtype == value.dtype or not _is_type(query.dtype):
        return False
    batch, heads, queries, size = query.shape
    tokens = key.shape[2]
    if key.shape != value.shape or key.shape != (batch, heads, tokens, size):
        return False
    if queries < _FEWEST_QUERIES or tokens == 0:
        return False
    if mask is not None and (is_causal or not _adds(mask, query, tokens)):
        return False
    if not query.device == key.device == value.device:
        return False
    kind = query.device.type
    return kind == "cpu" or (kind == "xpu" and is_memory_of_host(query))


def _is_type(dtype: torch.dtype) -> bool:
    return dtype == torch.float32 or (dtype == torch.bfloat16 and not _has_tiles())


@cache
def _has_tiles() -> bool:
    """Whether the processor multiplies tiles of bfloat16."""
    return bool(torch.cpu.get_capabilities().get("amx_bf16"))


def _adds(mask: Tensor, query: Tensor, tokens: int) -> bool:
    return (
        mask.dtype in (torch.float32, torch.bool, query.dtype)
        and 2 <= mask.dim() <= 4
        and broadcasts_to_scores(mask, query, tokens)
    )


def broadcasts_to_scores(mask: Tensor, query: Tensor, tokens: int) -> bool:
    """mask: of at most four dimensions; query: (batch, heads, queries, size); tokens: the
    keys."""
    sizes = (*query.shape[:3], tokens)[-mask.dim() :]
    return mask.device == query.device and all(
        size in (1, wanted) for size, wanted in zip(mask.shape, sizes, strict=True)
    )


def _added_form(mask: Tensor) -> Tensor:
    """Of a mask that may be true where a key takes part."""
    if mask.dtype != torch.bool:
        return mask.float()
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(~mask, -math.inf)
