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
    """A call. score: makes the function of scores of (bias, table). mask: makes that of a
    block mask, of the document of each key. captured: which of bias and table is
    differentiated."""

    score: Callable[[Tensor, Tensor], Any] | None = None
    mask: Callable[[Tensor], Any] | None = None
    captured: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    dtype: torch.dtype = torch.float32
    queries: int = QUERIES
    keys: int = KEYS
    key_heads: int = 4
    key_batches: int = 2
    value_width: int = 16
    is_strided: bool = False  # heads are behind rows in memory


def _causal(documents: Tensor) -> Any:
    return lambda b, h, q, k: q >= k


def _window(documents: Tensor) -> Any:
    return lambda b, h, q, k: (q - k).abs() < 20


def _same_document(documents: Tensor) -> Any:
    return lambda b, h, q, k: (q >= k) & (documents[q] == documents[k])


def _few_rows(documents: Tensor) -> Any:
    """A block of rows sees no key, another row sees none, either."""
    return lambda b, h, q, k: (q >= 17) & (q != 20) & (q >= k)


def _of_a_head(documents: Tensor) -> Any:
    return lambda b, h, q, k: (q >= k) | (h == b)


def _biased(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: score + bias[h, q, k]


def _in_steps(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: score + bias[h][q][k]


def _relative(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: score * 0.5 + table[q - k + KEYS]


def _linear(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: score + table[h].exp() * (k - q)


def _capped(bias: Tensor, table: Tensor) -> Any:
    return lambda score, b, h, q, k: torch.tanh(score / 2) * 2


_LSE = {"return_aux": flex.AuxRequest(lse=True)}

CASES = {
    "plain": Case(),
    "causal": Case(mask=_causal),
    "documents": Case(_capped, _same_document),
    "hidden rows": Case(mask=_few_rows, options=_LSE),
    "mask of heads": Case(mask=_of_a_head),
    "bias": Case(_biased, captured=(0,)),
    "bias in steps": Case(_in_steps),  # PyTorch has no gradient of this bias
    "table": Case(_relative, _window, captured=(1,)),
    "alibi": Case(_linear, _causal, captured=(1,)),
    "capped": Case(_capped),
    "groups": Case(mask=_causal, key_heads=2, options={"enable_gqa": True}),
    "logarithms": Case(_relative, _causal, options=_LSE),
    "pair": Case(_capped, _causal, options={"return_lse": True}),
    "decoding": Case(_relative, _window, captured=(1,), queries=1),
    "odd lengths": Case(_capped, _same_document, queries=37, keys=53, value_width=24),
    "strided": Case(mask=_causal, is_strided=True),
    "one batch of keys": Case(mask=_causal, key_batches=1),
    "bfloat16": Case(_capped, _causal, dtype=torch.bfloat16),
    "bfloat16 bias": Case(_biased, _window, captured=(0,), dtype=torch.bfloat16),
    "float16": Case(_capped, _causal, dtype=torch.float16, options=_LSE),
    "float64": Case(_relative, dtype=torch.float64),
}


# The other combinations of a case, a form and a mapping are slow tests.
FEW = ("table", "groups")


def few_first(count: int | None = None) -> list[Any]:
    return [
        name if name in FEW[:count] else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ]


def operands(case: Case) -> list[Tensor]:
    """Query, key, value, bias, table, and the gradients of the results."""
    rows, heads = (2, 4, case.queries), (case.key_batches, case.key_heads, case.keys)
    shapes = [(*rows, 16), (*heads, 16), (*heads, case.value_width)]
    shapes += [(4, QUERIES, KEYS), (2 * KEYS,), (*rows, case.value_width), rows, rows]
    made = [torch.randn(shape).to(case.dtype) for shape in shapes]
    if case.is_strided:
        made[:3] = [
            each.transpose(1, 2).contiguous().transpose(1, 2) for each in made[:3]
        ]
    return made


def run(
    case: Case, given: list[Tensor], how: Callable[[Any], Any], *, grad: bool
) -> list[Tensor]:
    """The results and the gradients of a call. how: makes the function that is called,
    as torch.compile does."""
    query, key, value, bias, table, *upstream = (each.detach() for each in given)
    wanted = [query, key, value, *((bias, table)[i] for i in case.captured)]
    for each in wanted:
        each.requires_grad_(grad)
    mask = None
    if case.mask is not None:
        batches = None if case.key_batches == len(query) else len(query)
        documents = torch.arange(KEYS, device=query.device) // 20
        function = case.mask(documents)
        of_heads = case.mask is _of_a_head
        mask = flex.create_block_mask(
            function,
            2 if of_heads else batches,
            4 if of_heads else None,
            case.queries,
            case.keys,
            query.device,
            BLOCK_SIZE=16,
        )
    score = None if case.score is None else case.score(bias, table)

    def attend(query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        found = flex.flex_attention(query, key, value, score, mask, **case.options)
        if not isinstance(found, tuple):
            return [found]
        out, others = found
        if isinstance(others, Tensor):
            return [out, others]
        return [out, others.lse]

    # PyTorch refuses gradients of CPU tensors, whose formulas it has. Dynamo traces no mock.
    unchecked = mock.patch.object(flex, "_validate_device", lambda *_: None)  # noqa: PT008
    with torch.set_grad_enabled(grad), unchecked:
        results = how(attend)(query, key, value)
    if grad:
        pairs = zip(results, upstream, strict=False)
        total = sum((a * b).sum() for a, b in pairs if a.requires_grad)
        results += torch.autograd.grad(total, wanted)  # type: ignore[arg-type]
    return [each.detach().cpu() for each in results]
