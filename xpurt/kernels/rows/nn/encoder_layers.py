"""Rows of whole layers with attention, which PyTorch's modules call in evaluation."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY

ATEN = torch.ops.aten


def mask_of_scores(mask: Tensor, kind: int | None) -> Tensor:
    """A mask of batch x heads x queries x keys, true for what is left out. Its kinds
    are: 0, of queries and keys; 1, of the keys of each sample; 2, of all."""
    mask = mask.to(torch.bool)
    if kind == 0 and mask.dim() == 2:
        return mask.view(1, 1, *mask.shape)
    if kind == 1 and mask.dim() == 2:
        return mask.view(mask.shape[0], 1, 1, mask.shape[1])
    if kind == 2 and mask.dim() == 4:
        return mask
    raise RuntimeError(f"no mask of {mask.dim()} dimensions has the type {kind}")


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """A query without any key gives NaN, as in PyTorch's kernel."""
    fits = query.dim() == 3 and query.shape[-1] == embed_dim
    shapes = {tuple(each.shape) for each in (query, key, value)}
    if not fits or len(shapes) > 1 or embed_dim % num_head or query.numel() == 0:
        return ATEN._native_multi_head_attention(  # type: ignore[no-any-return]
            *(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias),
            *(proj_weight, proj_bias, mask, need_weights, average_attn_weights),
            mask_type,
        )
    batch, length, _ = query.shape
    if query is key and key is value:
        parts = F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        each = zip(
            (query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True
        )
        parts = tuple(F.linear(x, weight, bias) for x, weight, bias in each)
    q, k, v = (part.view(batch, length, num_head, -1).transpose(1, 2) for part in parts)
    weights = None
    if mask is None and not need_weights:
        found = F.scaled_dot_product_attention(q, k, v)
    else:
        scores = (q / math.sqrt(q.shape[-1])) @ k.mT
        if mask is not None:
            scores = scores.masked_fill(mask_of_scores(mask, mask_type), -math.inf)
        weights = scores.softmax(-1)
        found = weights @ v
    joined = found.transpose(1, 2).reshape(batch, length, embed_dim)
    result = F.linear(joined, proj_weight, proj_bias)
    if not need_weights:
        return result, None
    assert weights is not None
    return result, weights.mean(1) if average_attn_weights else weights


def encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    if src.numel() == 0:
        return src.clone()

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), weight, bias, eps)

    x = norm(src, norm_weight_1, norm_bias_1) if norm_first else src
    x = (
        src
        + attention(
            *(
                x,
                x,
                x,
                embed_dim,
                num_heads,
                qkv_weight,
                qkv_bias,
                proj_weight,
                proj_bias,
            ),
            mask,
            need_weights=False,
            mask_type=mask_type,
        )[0]
    )
    if not norm_first:
        x = norm(x, norm_weight_1, norm_bias_1)
    inner = norm(x, norm_weight_2, norm_bias_2) if norm_first else x
    inner = F.linear(inner, ffn_weight_1, ffn_bias_1)
    inner = F.gelu(inner) if use_gelu else inner.relu()
    x = x + F.linear(inner, ffn_weight_2, ffn_bias_2)
    return x if norm_first else norm(x, norm_weight_2, norm_bias_2)


ROWS = (
    Decomposed(
        "_native_multi_head_attention", attention, FLOATING_ONLY, native_on_cpu=True
    ),
    Decomposed(
        "_transformer_encoder_layer_fwd",
        encoder_layer,
        FLOATING_ONLY,
        native_on_cpu=True,
    ),
)
