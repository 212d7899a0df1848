"""What an optimized model leaves as it is, and says so; and what it refuses."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_types import need_bf16
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt.optimization import fused_linear, fusions, module_classes
from xpurt.optimization.comparison import difference_of
from xpurt.optimization.in_float64 import InFloat64
from xpurt.optimization.primitives import types_of_cpu

pytestmark = pytest.mark.usefixtures("in_optimized_form")


class Base(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)


class ByType(Base):
    def forward(self, x: Any) -> Tensor:
        made: Tensor = self.layer(x if isinstance(x, Tensor) else torch.cat(x))
        return made.relu()


class ByValue(Base):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layer(x)
        return y.relu() if x.sum() > 0 else y


class Counts(Base):
    calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y: Tensor = self.layer(x)
        return y.relu()


class AnyNumber(Base):
    def forward(self, *x: Tensor) -> Tensor:
        y: Tensor = self.layer(x[0])
        return y.relu()


class UsesOptional(Base):
    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        y: Tensor = self.layer(x) * scale
        return y.relu()


class NoGradients(Base):
    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            y: Tensor = self.layer(x)
        return y.relu()


@pytest.mark.parametrize("kind", [ByType, ByValue, Counts, AnyNumber, NoGradients])
def test_a_forward_that_a_symbolic_trace_can_t_have(kind: type[nn.Module]) -> None:
    model = kind().eval()
    made: Any = xpurt.optimize(model)
    for x in (torch.ones(2, 4), -torch.ones(2, 4)):
        with torch.no_grad():
            assert_close(made(x), model(x))
    assert ("layer", "fused: linear layer + relu") in made.report.done or (
        kind is ByValue  # which decides between the layer and the activation
    )


def test_effects_happen_in_each_call() -> None:
    made: Any = xpurt.optimize(Counts().eval())
    with torch.no_grad():
        made(torch.ones(1, 4))
        made(torch.ones(1, 4))
    assert made.calls == 2


def test_an_optional_argument_is_seen() -> None:
    model = UsesOptional().eval()
    made, x = xpurt.optimize(model), torch.randn(3, 4)
    with torch.no_grad():
        for args, kwargs in (((x,), {}), ((x, 2.0), {}), ((x,), {"scale": 3.0})):
            assert_close(made(*args, **kwargs), model(*args, **kwargs))


class WritesBetween(nn.Module):
    """The input changes after the layer has read it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        z = self.layer(x)
        y.mul_(2)
        x.zero_()
        return F.relu(z + y)


class WritesThroughAModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.relu = nn.Linear(4, 4), nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        z = self.layer(x)
        return F.relu(z + self.relu(x))


@pytest.mark.parametrize("kind", [WritesBetween, WritesThroughAModule])
def test_writes_between_keep_their_place(kind: type[nn.Module]) -> None:
    model = kind().eval()
    made = xpurt.optimize(model)
    count = 2 if kind is WritesBetween else 1
    args = [torch.randn(3, 4) for _ in range(count)]
    one, other = ([each.clone() for each in args] for _ in range(2))
    with torch.no_grad():
        assert_close(made(*one), model(*other))
    assert all(map(torch.equal, one, other))


class ReadTwice(Base):
    """Another reader wants the layer's own result."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer(x)
        return y, F.relu(y)


class AddsAnotherType(Base):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layer(x) + x)


def test_a_value_with_another_reader() -> None:
    model, x = ReadTwice().eval(), torch.randn(2, 4)
    with torch.no_grad():
        assert_close(xpurt.optimize(model)(x), model(x))


def test_the_type_of_a_sum_is_that_of_autocast() -> None:
    need_bf16()
    model, x = AddsAnotherType().eval(), torch.randn(2, 4)
    made = xpurt.optimize(model, dtype=torch.bfloat16)
    with torch.no_grad():
        found = made(x)
    assert found.dtype is torch.float32
    assert_close(found, model(x), rtol=2e-2, atol=2e-2)


class Smooth(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(self.layer(x))


FAULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "scaled": lambda y: y * 0.93,
    "small values gone": lambda y: torch.where(y.abs() < 0.25, 0, y),
    "one of many": lambda y: y.index_fill(-1, torch.tensor([3]), 0.5),
    "none": lambda y: y,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", [Smooth, lambda: nn.Linear(64, 64)])
def test_a_sample_allows_no_more_than_rounding(
    kind: Callable[[], nn.Module],
    fault: str,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right, wrong = fused_linear.linear, fault != "none"

    def linear(*args: Any) -> Tensor:
        return FAULTS[fault](right(*args))

    monkeypatch.setattr(fusions, "linear", linear)
    monkeypatch.setattr(module_classes, "linear", linear)
    model, x = kind().eval().to(dtype), torch.randn(16, 64).to(dtype)
    made: Any = xpurt.optimize(model, sample_input=x)
    assert any("differed by" in why for _, why in made.report.left) == bool(wrong)
    assert bool(made.report.done) == (not wrong)
    with torch.no_grad():
        assert torch.equal(made(x), model(x)) or not wrong


def test_a_nan_that_became_zero_is_found() -> None:
    right, wrong = torch.tensor([1.0, torch.nan]), torch.tensor([1.0, 0.0])
    assert difference_of(right, right, right.double()) is None
    assert difference_of(right, wrong, right.double()) is not None


def test_views_that_channels_last_does_not_allow() -> None:
    class Views(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(3, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.layer(x)
            return y.view(y.shape[0], -1)

    model, x = Views().eval(), torch.randn(2, 3, 8, 8)
    made: Any = xpurt.optimize(model, sample_input=x)
    assert any("not in channels_last" in why for _, why in made.report.left)
    with torch.no_grad():
        assert_close(made(x), model(x), rtol=1e-5, atol=1e-5)


def test_bad_input() -> None:
    model = nn.Sequential(nn.Linear(4, 2)).eval()
    with pytest.raises(TypeError, match=r"torch.nn.Module is optimized; found int"):
        xpurt.optimize(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"training mode: call model\.eval"):
        xpurt.optimize(nn.Linear(2, 2))
    with pytest.raises(
        ValueError, match="dtype is float32, bfloat16 or float16; found"
    ):
        xpurt.optimize(model, dtype=torch.int8)
    with pytest.raises(
        ValueError, match=r"does not take sample_input .*float32\[2, 3\]"
    ):
        xpurt.optimize(model, sample_input=torch.ones(2, 3))
    with pytest.raises(ValueError, match="is optimized already"):
        xpurt.optimize(xpurt.optimize(model))
    with pytest.raises(TypeError, match="compiled model was given"):
        xpurt.optimize(torch.compile(model))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a scripted model"):
        xpurt.optimize(torch.jit.script(model))
    for dtype in {torch.bfloat16, torch.float16} - {*types_of_cpu()}:
        with pytest.raises(ValueError, match=r"oneDNN computes float32.* on this"):
            xpurt.optimize(model, dtype=dtype)


def test_shared_and_frozen_parameters() -> None:
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    two.weight = one.weight
    one.bias.requires_grad_(False)
    model = nn.Sequential(one, nn.ReLU(), two).eval()
    made: Any = xpurt.optimize(model)
    assert made[0].weight is made[2].weight
    x = torch.randn(2, 4)
    with torch.no_grad():
        for each in (model, made):
            each[0].weight.mul_(2)
        assert_close(made(x), model(x))


class Accumulates(Base):
    kept: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        self.kept += x.mean(0)
        return F.relu(self.layer(x)) + self.kept


def test_a_write_that_float64_would_lose_is_named() -> None:
    """The bound of the comparison would be as wide as what is lost."""
    made: Any = xpurt.optimize(Accumulates().eval(), sample_input=torch.randn(2, 4))
    assert any("writes to torch.float32" in why for _, why in made.report.left)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to(torch.float32),
        lambda x: torch.zeros(2, dtype=torch.float16),
        lambda x: x.to(torch.complex64).real,
        lambda x: x.sum(dtype=torch.bfloat16),
    ],
)
def test_dtypes_in_float64(make: Callable[[Tensor], Tensor]) -> None:
    with InFloat64():
        assert make(torch.ones(3)).dtype is torch.float64


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(1),
        lambda x: x.__setitem__(0, 1.0),
        lambda x: torch.add(x, 1, out=x),
        lambda x: F.relu(x, inplace=True),
        lambda x: x.__imul__(2),
    ],
)
def test_writes_in_float64(write: Callable[[Tensor], Any]) -> None:
    with InFloat64():
        with pytest.raises(RuntimeError, match=r"writes to torch\.float32"):
            write(torch.ones(3).float())
        wide = torch.ones(3) * 2
        write(wide)
    assert wide.dtype is torch.float64
    assert not torch.equal(wide, torch.full((3,), 2.0, dtype=torch.float64)) or (
        write(torch.full((3,), 2.0)) is not None  # of ReLU, which keeps them
    )
