"""Calls on operands without elements: none goes to the host, and each is right."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from xpurt import _C
from xpurt.errors import FallbackError

WHOLE, PLACES = torch.arange(18.0).view(3, 6), torch.tensor([0, 2])
NONE = PLACES[:0]

CALLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "index": lambda x, i: x[:, 6:][i],
    "index of nothing": lambda x, i: x[i[:0]],
    "index_select": lambda x, i: x[:, 6:].index_select(0, i),
    "gather": lambda x, i: x[:, 6:].gather(0, i[:0].view(1, 0)),
    "take": lambda x, i: x[:, 6:].take(i[:0]),
    "index_add": lambda x, i: x[:, 6:].index_add(0, i, x[:2, 6:]),
    "index_copy": lambda x, i: x[:, 6:].index_copy(0, i, x[:2, 6:]),
    "index_fill": lambda x, i: x[:, 6:].index_fill(0, i, 1.0),
    "index_reduce": lambda x, i: x[:, 6:].index_reduce(0, i, x[:2, 6:], "amax"),
    "index_put": lambda x, i: x[:, 6:].index_put((i,), x[0, :1]),
    "put": lambda x, i: x[:, 6:].put(i[:0], x[0, :0]),
    "scatter": lambda x, i: x[:, 6:].scatter(0, i[:0].view(1, 0), 1.0),
    "scatter_add": lambda x, i: x[:, 6:].scatter_add(0, i[:0].view(1, 0), x[:1, 6:]),
    "scatter_reduce": lambda x, i: x[:, 6:].scatter_reduce(
        0, i[:0].view(1, 0), x[:1, 6:], "sum"
    ),
    "searchsorted": lambda x, i: torch.searchsorted(x[0, :0], x[0]).float(),
    "embedding": lambda x, i: F.embedding(i[:0], x),
    "embedding_bag": lambda x, i: F.embedding_bag(i[:0], x, i[:1]),
    "nll_loss, mean": lambda x, i: F.nll_loss(x[:0], i[:0]),
    "nll_loss, sum": lambda x, i: F.nll_loss(x[:0], i[:0], reduction="sum"),
    "nll_loss, none": lambda x, i: F.nll_loss(x[:0], i[:0], reduction="none"),
    "cross_entropy": lambda x, i: F.cross_entropy(x[:0], i[:0]),
    "nll_loss2d": lambda x, i: F.nll_loss(
        x[:0].view(0, 6, 1, 1), i[:0].view(0, 1, 1), reduction="sum"
    ),
    # Their sum and mean are uninitialized memory on the CPU.
    "multi_margin_loss": lambda x, i: F.multi_margin_loss(
        x[:0], i[:0], reduction="none"
    ),
    "multilabel_margin_loss": lambda x, i: F.multilabel_margin_loss(
        x[:0], i[:0].view(0, 1).expand(0, 6), reduction="none"
    ),
    "bernoulli": lambda x, i: torch.bernoulli(x[:0]),
    "poisson": lambda x, i: torch.poisson(x[:0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_goes_to_the_host(xpu: torch.device, name: str) -> None:
    call = CALLS[name]

    def computed(device: torch.device | str) -> tuple[Tensor, Tensor | None]:
        x = WHOLE.to(device, copy=True).requires_grad_()
        result = call(x, PLACES.to(device))
        if result.requires_grad:
            result.sum().backward()
        return result.detach().cpu(), x.grad.cpu() if x.grad is not None else None

    expected = computed("cpu")
    before = _C.testing.fallback_mode()
    _C.set_fallback_mode("error")
    try:
        found = computed(xpu)
    finally:
        _C.set_fallback_mode(before)
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is None:
            assert ours is None
        else:
            torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.mappings("GPU")
def test_an_index_into_nothing_is_an_error(xpu: torch.device) -> None:
    nothing = torch.empty(0, 5, device=xpu)
    place = torch.zeros(1, dtype=torch.long, device=xpu)
    for call in (
        lambda: nothing[place],
        lambda: nothing.index_select(0, place),
        lambda: nothing.take(place),
        lambda: nothing.put_(place, torch.ones(1, device=xpu)),
        lambda: nothing.gather(0, place.view(1, 1)),
        lambda: F.embedding(place, nothing),
    ):
        with pytest.raises((IndexError, RuntimeError)):
            torch.xpu.synchronize(call().device)
    torch.xpu.synchronize()


@pytest.mark.mappings("GPU")
def test_deterministic_mode_is_the_reason_that_is_named(xpu: torch.device) -> None:
    target, places = torch.zeros(3, 3, device=xpu), PLACES.to(xpu)
    torch.use_deterministic_algorithms(True)
    before = _C.testing.fallback_mode()
    _C.set_fallback_mode("error")
    try:
        with pytest.raises(FallbackError, match="which deterministic mode demands"):
            target[places, places] = 1.0
    finally:
        _C.set_fallback_mode(before)
        torch.use_deterministic_algorithms(False)
    target[places, places] = 1.0
    assert target.sum().item() == 2
