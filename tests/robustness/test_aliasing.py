"""Operands that share memory with what is written: the CPU's result, or its error."""

from collections.abc import Callable

import pytest
import torch

from xpurt.testing.oracle import agree, copied, outcome

pytestmark = pytest.mark.usefixtures("policy")

Change = Callable[[torch.Tensor], object]

# For a tensor of shape (4, 4).
ALLOWED: dict[str, Change] = {
    "itself": lambda x: x.add_(x),
    "itself, reduced": lambda x: x.sub_(x.sum(0)),
    "a disjoint row": lambda x: x[0].mul_(x[1]),
    "interleaved": lambda x: x.view(-1)[::2].add_(x.view(-1)[1::2]),
    "out is an operand": lambda x: torch.mul(x, x + 1, out=x),
    "out is a disjoint part": lambda x: torch.exp(x[:2], out=x[2:]),
    "a sum into another row": lambda x: torch.sum(x[:3], 0, out=x[3]),
    "a product into another block": lambda x: torch.mm(
        x[:2, :2], x[:2, 2:], out=x[2:, :2]
    ),
    "softmax into itself": lambda x: torch.softmax(x, 1, out=x),
    "where into an operand": lambda x: torch.where(x > 5, x, -x, out=x),
    "cumsum in place": lambda x: x.cumsum_(0),
    "transposed, read first": lambda x: x.copy_(x.t().clone()),
    "expanded operand of itself": lambda x: x[1:].add_(x[:1].expand(3, 4)),
    "a copy onto itself": lambda x: x.expand(2, 4, 4).copy_(x.expand(2, 4, 4)),
    "fill an expanded tensor": lambda x: x[:1].expand(3, 4).fill_(2),
    "masked_fill an expanded tensor": lambda x: (
        x[:1].expand(2, 4).masked_fill_(x[1:3] > 5, 2)
    ),
    "foreach on parts": lambda x: torch._foreach_add_([x[0], x[1]], [x[2], x[2]]),
    "index_copy of itself": lambda x: x.index_copy_(
        0, torch.tensor([0], device=x.device), x[2:3].clone()
    ),
    "masked_scatter of itself": lambda x: x.masked_scatter_(x % 3 > 0, x),
    "masked_fill by its own element": lambda x: x.masked_fill_(x > 5, x[1, 1]),
}
REFUSED: dict[str, Change] = {
    "shifted out": lambda x: torch.exp(x.view(-1)[:-1], out=x.view(-1)[1:]),
    "shifted operand": lambda x: x[1:].mul_(x[:-1]),
    "its own row": lambda x: x.add_(x[0]),
    "its transpose": lambda x: x.add_(x.t()),
    "shifted where": lambda x: torch.where(x[1:] > 0, x[1:], x[1:], out=x[:-1]),
    "shifted copy": lambda x: x[1:].copy_(x[:-1]),
    "expanded": lambda x: x[:1].expand(3, 4).add_(1),
    "expanded out": lambda x: torch.neg(x[:3], out=x[3:].expand(3, 4)),
    "expanded copy": lambda x: x[:1].expand(3, 4).copy_(x[1:]),
    "cat into an operand": lambda x: torch.cat((x[:1], x[1:2]), out=x[:2]),
    "masked_fill with its own bytes": lambda x: x.masked_fill_(
        x.view(-1).view(torch.bool)[:16].view(4, 4), 1
    ),
    "scatter of itself": lambda x: x.scatter_(0, rows(x), x),
    "scatter_add of itself": lambda x: x.scatter_add_(0, rows(x), x),
    "scatter_reduce of itself": lambda x: x.scatter_reduce_(0, rows(x), x, "amax"),
    "index_copy of itself": lambda x: x.index_copy_(0, order(x), x),
    "index_add of itself": lambda x: x.index_add_(0, order(x), x),
    "index_reduce of itself": lambda x: x.index_reduce_(0, order(x), x, "prod"),
    "index_put of itself": lambda x: x.index_put_((order(x),), x),
    "index_put of itself, added": lambda x: x.index_put_((order(x),), x, True),
    "assigned to itself by index": lambda x: x.__setitem__(order(x), x),
    "scatter at itself": lambda x: (i := order(x)).scatter_(0, i, 5),
    "index_fill at itself": lambda x: (i := order(x)).index_fill_(0, i, 5),
    "put at itself": lambda x: (i := order(x)).put_(i, i.clone()),
    "index_add into expanded": lambda x: (
        x[0].expand(4, 4).index_add_(0, order(x)[:1], x[:1])
    ),
    "lerp into a shifted part": lambda x: torch.lerp(x[:-1], x[:-1], 0.5, out=x[1:]),
}


def order(x: torch.Tensor) -> torch.Tensor:
    return torch.tensor([1, 0, 3, 2], device=x.device)


def rows(x: torch.Tensor) -> torch.Tensor:
    return order(x)[:, None].expand(4, 4).contiguous()


def numbers() -> torch.Tensor:
    return torch.arange(16.0).reshape(4, 4)


@pytest.mark.parametrize("change", ALLOWED)
@pytest.mark.filterwarnings("ignore:Use of masked_fill_ on expanded")
def test_allowed(change: str, xpu: torch.device) -> None:
    agree(ALLOWED[change], numbers())


@pytest.mark.parametrize("change", REFUSED)
def test_refused(change: str, xpu: torch.device) -> None:
    """With the CPU's words, and nothing is written."""
    (expected,), (tensor,) = (copied((numbers(),), d) for d in ("cpu", xpu))
    _, error = outcome(REFUSED[change], expected)
    _, found = outcome(REFUSED[change], tensor)
    assert type(found) is type(error) is RuntimeError
    assert first_sentence(found) == first_sentence(error)
    assert torch.equal(tensor.cpu(), numbers())


def first_sentence(error: Exception | None) -> str:
    return str(error).split(". ")[0].splitlines()[0]
