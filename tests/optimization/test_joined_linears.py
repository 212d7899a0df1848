"""Linear layers of one input as one product: which are, their values, and what parts them."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_types import need_bf16
from torch import Tensor, nn
from torch.testing import assert_close

import xpurt
from xpurt.optimization.patterns import joined_linears

pytestmark = pytest.mark.usefixtures("in_optimized_form")
SIZE = 16


class Projections(nn.Module):
    """As attention of transformers begins, with any arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.k_proj = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, 8)
        self.v_proj = nn.Linear(SIZE, 8, bias=False)

    def forward(self, hidden_states: Tensor, **kwargs: Any) -> list[Tensor]:
        q = self.q_proj(hidden_states).view(*hidden_states.shape[:-1], 4, -1)
        return [q, self.k_proj(hidden_states), self.v_proj(hidden_states)]


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many layers each product has had."""
    counts: list[int] = []
    op = joined_linears.joined_linear

    def note(x: Tensor, layers: tuple[Any, ...]) -> Tensor | None:
        made = op(x, layers)
        if made is not None:
            counts.append(len(layers))
        return made

    monkeypatch.setattr(joined_linears, "joined_linear", note)
    return counts


def made_of(kind: Callable[[], nn.Module], device: str) -> tuple[nn.Module, Any]:
    need_bf16(device)
    torch.manual_seed(0)
    model = kind().eval().to(device, torch.bfloat16)
    return model, xpurt.optimize(model)


def tokens(device: str, *sizes: int, seed: int = 1) -> Tensor:
    """Three rows and more: of fewer, some processors read each weight by itself."""
    made = torch.randn(*sizes, SIZE, generator=torch.Generator().manual_seed(seed))
    return made.to(device, torch.bfloat16)


def check(made: nn.Module, model: nn.Module, x: Tensor, **kwargs: Any) -> None:
    with torch.no_grad():
        found, expected = made(x, **kwargs), model(x, **kwargs)
    for one, other in zip(found, expected, strict=True):
        assert one.is_contiguous()
        assert_close(one, other, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("sizes", [(1, 3), (2, 2), (3,), (3, 1)])
def test_values(device: str, sizes: tuple[int, ...], products: list[int]) -> None:
    model, made = made_of(Projections, device)
    check(made, model, tokens(device, *sizes), anything=3)
    assert ("q_proj", "fused: one product with k_proj and v_proj") in made.report.done
    assert products == [3]
    with torch.no_grad():
        for each in (model, made):
            each.k_proj.bias.add_(3)
    check(made, model, tokens(device, *sizes))
    assert products == [3, 3]


def test_many_tokens_and_float32_are_left(device: str, products: list[int]) -> None:
    model, made = made_of(Projections, device)
    check(made, model, tokens(device, 2, 8))
    with torch.no_grad():
        made.float()(tokens(device, 1, 1).float())
    assert products == []


def test_under_autocast(device: str, products: list[int]) -> None:
    need_bf16(device)
    torch.manual_seed(0)
    model, x = Projections().eval().to(device), tokens(device, 1, 3).float()
    made = xpurt.optimize(model, dtype=torch.bfloat16)
    with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
        expected = model(x)
    with torch.no_grad():
        found = made(x)
    assert_close(found, expected, rtol=2e-2, atol=2e-2)
    assert products == [3]


def test_with_gradients_layers_compute_by_themselves(products: list[int]) -> None:
    model, made = made_of(Projections, "cpu")
    x = tokens("cpu", 1, 3)
    for one, other in zip(made(x), model(x), strict=True):
        assert torch.equal(one, other)
    assert products == []
    with torch.inference_mode():
        made(tokens("cpu", 1, 3) + 0)
    assert products == [3]


class WritesBetween(Projections):
    def forward(self, x: Tensor) -> list[Tensor]:
        q = self.q_proj(x)
        x.mul_(2)
        return [q, self.k_proj(x), self.v_proj(x)]


class WritesByOperator(Projections):
    def forward(self, x: Tensor) -> list[Tensor]:
        q = self.q_proj(x)
        x *= 2
        return [q, self.k_proj(x), self.v_proj(x)]


class WritesItem(Projections):
    def forward(self, x: Tensor) -> list[Tensor]:
        q = self.q_proj(x)
        x[0] = 0.5
        return [q, self.k_proj(x), self.v_proj(x)]


class WritesWeight(Projections):
    def forward(self, x: Tensor) -> list[Tensor]:
        q = self.q_proj(x)
        self.k_proj.weight.mul_(2)
        return [q, self.k_proj(x), self.v_proj(x)]


class InABranch(Projections):
    """As with keys and values from a cache."""

    def forward(self, x: Tensor, known: Any = None) -> list[Tensor]:
        q = self.q_proj(x)
        if known is not None:
            return [q, *known]
        return [q, self.k_proj(x), self.v_proj(x)]


@pytest.mark.parametrize(
    "kind", [WritesBetween, WritesByOperator, WritesItem, WritesWeight]
)
def test_writes_between_the_calls(
    device: str, kind: Callable[[], nn.Module], products: list[int]
) -> None:
    model, made = made_of(kind, device)
    for seed in range(3):
        with torch.no_grad():
            found = made(tokens(device, 1, 3, seed=seed))
            expected = model(tokens(device, 1, 3, seed=seed))
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other, rtol=2e-2, atol=2e-2)
    assert 3 not in products


def test_each_branch_has_a_graph_of_its_own(device: str, products: list[int]) -> None:
    model, made = made_of(InABranch, device)
    for count in range(4):
        check(made, model, tokens(device, 1, 3, seed=count), known=[])
    assert products == []
    check(made, model, tokens(device, 1, 3))
    assert products == [3]


class OtherInputs(Projections):
    def forward(self, x: Tensor) -> list[Tensor]:
        y = x + 1
        q = self.q_proj(x)
        x = y * 2
        return [q, self.k_proj(x), self.v_proj(y)]


class CalledTwice(Projections):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [self.q_proj(x), self.q_proj(x)]


def test_layers_of_other_inputs_are_not_joined(products: list[int]) -> None:
    model, made = made_of(OtherInputs, "cpu")
    check(made, model, tokens("cpu", 1, 3))
    assert products == []


def test_a_layer_that_is_called_twice(products: list[int]) -> None:
    model, made = made_of(CalledTwice, "cpu")
    check(made, model, tokens("cpu", 1, 3))
    assert products == [2]


def test_hooks_see_each_layer(device: str) -> None:
    model, made = made_of(Projections, device)
    seen: list[Tensor] = []
    made.k_proj.register_forward_hook(lambda *args: seen.append(args[2]))
    made.v_proj.register_forward_pre_hook(lambda _, args: (args[0] * 2,))
    model.v_proj.register_forward_pre_hook(lambda _, args: (args[0] * 2,))
    x = tokens(device, 1, 3)
    check(made, model, x)
    with torch.no_grad():
        assert_close(seen[0], model.k_proj(x), rtol=2e-2, atol=2e-2)
    check(made, model, x)


def test_copies_are_joined_among_themselves(products: list[int]) -> None:
    model, made = made_of(Projections, "cpu")
    x = tokens("cpu", 1, 3)
    check(made, model, x)
    for each in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        products.clear()
        with torch.no_grad():
            each.k_proj.weight.zero_()
            each.k_proj.bias.zero_()
            assert not each(x)[1].any()
        check(made, model, x)
        assert products == [3, 3]
        assert list(each.state_dict()) == list(model.state_dict())


def test_a_layer_that_is_replaced(device: str) -> None:
    model, made = made_of(Projections, device)
    check(made, model, tokens(device, 1, 3))
    other = nn.Linear(SIZE, 8).eval().to(device, torch.bfloat16)
    made.k_proj = model.k_proj = other
    for seed in range(3):
        check(made, model, tokens(device, 1, 3, seed=seed))
