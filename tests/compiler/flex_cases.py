"""Calls of flex_attention, and what computes them with more digits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch.nn.attention import flex_attention as flex

QUERIES, KEYS = 48, 64


@dataclass(frozen=True)
class Case:
    """A call. score: makes the function of scores of (bias, table). mask: that of a
    block mask. captured: which of the two is differentiated."""

    score: Callable[[Tensor, Tensor], Any] | None = None
    mask: Callable[..., Tensor] | None = None
    captured: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    queries: int = QUERIES
    key_heads: int = 4
    key_batches: int = 2


def _causal(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return q >= k


def _window(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
    return (q - k).abs() < 20


def _biased(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: score + bias[h, q, k]


def _relative(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: score * 0.5 + table[q - k + KEYS]


def _capped(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: torch.tanh(score / 2) * 2


_LSE = {"return_aux": flex.AuxRequest(lse=True)}

CASES = {
    "plain": Case(),
    "causal": Case(mask=_causal),
    "bias": Case(_biased, captured=(0,)),
    "table": Case(_relative, _window, captured=(1,)),
    "capped": Case(_capped),
    "groups": Case(mask=_causal, key_heads=2, options={"enable_gqa": True}),
    "logarithms": Case(_relative, _causal, options=_LSE),
    "decoding": Case(_relative, _window, captured=(1,), queries=1),
    "one batch of keys": Case(mask=_causal, key_batches=1),
    "bfloat16": Case(_capped, _causal, dtype=torch.bfloat16),
    "float64": Case(_relative, dtype=torch.float64),
}


# The other combinations of a case, a form and a mapping are slow tests.
FEW = ("table", "groups")


def few_first() -> list[Any]:
    return [
        name if name in FEW else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ]


def operands(case: Case) -> list[Tensor]:
    """Query, key, value, bias, table, and the gradients of the results."""
    of_keys = (case.key_batches, case.key_heads, KEYS, 16)
    shapes = [(2, 4, case.queries, 16), of_keys, of_keys, (4, QUERIES, KEYS)]
    shapes += [(2 * KEYS,), (2, 4, case.queries, 16), (2, 4, case.queries)]
    return [torch.randn(shape).to(case.dtype) for shape in shapes]


def run(
    case: Case, given: list[Tensor], how: Callable[[Any], Any], *, grad: bool
) -> list[Tensor]:
    """The results and the gradients of a call. how: makes the function that is called,
    as torch.compile does."""
    query, key, value, bias, table, *upstream = (
        each.detach().requires_grad_(grad) for each in given
    )
    mask = None
    if case.mask is not None:
        batches = None if case.key_batches == len(query) else len(query)
        mask = flex.create_block_mask(
            case.mask, batches, None, case.queries, KEYS, query.device, BLOCK_SIZE=16
        )
    score = None if case.score is None else case.score(bias, table)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        found = flex.flex_attention(query, key, value, score, mask, **case.options)
        return [found[0], found[1].lse] if isinstance(found, tuple) else [found]

    # PyTorch refuses gradients of CPU tensors, whose formulas it has. Dynamo traces no mock.
    unchecked = mock.patch.object(flex, "_validate_device", lambda *_: None)  # noqa: PT008
    with torch.set_grad_enabled(grad), unchecked:
        results = how(attend)(query, key, value)
    if grad:
        total = sum((a * b).sum() for a, b in zip(results, upstream, strict=False))
        wanted = [query, key, value, *((bias, table)[i] for i in case.captured)]
        results += torch.autograd.grad(total, wanted)  # type: ignore[arg-type]
    return [each.detach().cpu() for each in results]
