"""Attention of some rows of the queries, and its gradients."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from xpurt.compiler.flex.scores import (
    Attention,
    Scores,
    over_positions,
    precise,
    product,
    product_of_rows,
    scores_of,
)

_LN2: Final = math.log(2)


def attend(
    given: Attention, query: Tensor, first: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The results of rows: [batch, query heads, rows, values] in the type of the
    queries; the logarithm of the sums, and the greatest scores, of base 2, in float32:
    [batch, query heads, rows]. A row whose scores are all masked is 0, and its logarithm
    -inf."""
    scores = scores_of(given, query, first)
    shares, sums, greatest = _softmax(scores)
    out = product(shares.to(query.dtype), given.value.to(query.dtype))
    results = torch.log(sums) + torch.where(sums == 0, 0, greatest)
    logarithms, greatest = (
        (each.squeeze(-1) / _LN2).to(torch.float32) for each in (results, greatest)
    )
    return out, logarithms, greatest


@dataclass(frozen=True, slots=True)
class Upstream:
    """Of the same rows as the queries. out: their result. of_out: its gradient.
    of_logarithms: that of the logarithms of the sums, or None."""

    out: Tensor
    of_out: Tensor
    of_logarithms: Tensor | None


@dataclass(frozen=True, slots=True)
class Gradients:
    """of_key and of_value are the rows' shares of [batch, heads, keys, ...]."""

    of_query: Tensor
    of_key: Tensor
    of_value: Tensor
    of_captured: list[Tensor | None]


def differentiate(
    given: Attention,
    joint: Callable[..., Any],
    query: Tensor,
    first: Tensor | None,
    upstream: Upstream,
) -> Gradients:
    """The gradients of rows, whose scores are computed again.

    joint: the gradient of the function of scores, of (score, batch, head, query, key,
    gradient, *captured).
    """
    scores = scores_of(given, query, first)
    shares, _, _ = _softmax(scores)
    heads = given.key.shape[1]
    of_value = product_of_rows(shares.to(query.dtype), upstream.of_out, heads)
    of_out = precise(upstream.of_out)
    of_shares = product(of_out, precise(given.value).transpose(-2, -1))
    mean = (precise(upstream.out) * of_out).sum(-1, keepdim=True)
    if upstream.of_logarithms is not None:
        mean = mean - (upstream.of_logarithms / _LN2)[..., None]
    of_modified = shares * (of_shares - mean)
    of_plain, *of_captured = _of_function(given, joint, scores, of_modified)
    of_plain = torch.where(scores.shown, of_plain * given.scale, 0).to(query.dtype)
    return Gradients(
        of_query=product(of_plain, given.key.to(query.dtype)),
        of_key=product_of_rows(of_plain, query, heads),
        of_value=of_value,
        of_captured=of_captured,
    )


def _softmax(scores: Scores) -> tuple[Tensor, Tensor, Tensor]:
    """The shares of the keys, 0 where all are masked; sums and greatest scores."""
    greatest = scores.modified.amax(-1, keepdim=True)
    terms = (scores.modified - torch.where(greatest == -torch.inf, 0, greatest)).exp()
    sums = terms.sum(-1, keepdim=True)
    return terms / torch.where(sums == 0, 1, sums), sums, greatest


def _of_function(
    given: Attention, joint: Callable[..., Any], scores: Scores, upstream: Tensor
) -> list[Any]:
    """The gradients of scores before the function, and of the captured tensors."""
    count = len(given.captured)
    found = over_positions(
        joint,
        prefix=(0,),
        suffix=(0,) + (None,) * count,
        out_dims=[0] + [None] * (4 + count),
    )(scores.plain, *scores.positions, upstream, *given.captured)
    return [found[0], *found[5:]]
