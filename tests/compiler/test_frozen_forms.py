"""Graphs with frozen parameters in two forms: the faster one is kept."""

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
import torch
from made_choices import made_choices
from torch import Tensor, nn
from torch._inductor import config
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.compiler import form_estimate
from xpurt.compiler.frozen import forms
from xpurt.compiler.frozen.forms import OneOfTwo
from xpurt.mapping import current_placement

pytestmark = [
    pytest.mark.filterwarnings("error:torch.compile runs"),
    pytest.mark.mappings("CPU"),
]


@pytest.fixture(autouse=True)
def learning(xpu: torch.device, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    index = xpu.index or 0
    if not _C.host_reads(index) or len(current_placement().ordinals[index]) > 1:
        pytest.skip("there is one form here")
    monkeypatch.setattr(form_estimate, "LEAST_US", 0)
    before = _C.learning()
    _C.set_learning(True)
    yield
    _C.set_learning(before)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[OneOfTwo]:
    """The choices that are made from now on."""
    return made_choices(monkeypatch, forms, "OneOfTwo")


class Layers(nn.Module):
    """A normalization that is folded, a product, and a buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 32, 3)
        self.norm = nn.BatchNorm2d(32)
        self.linear = nn.Linear(32, 64)
        self.register_buffer("calls", torch.zeros(()))
        self.calls: Tensor

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y = self.norm(self.convolution(x)).relu()
        return self.linear(y.mean((2, 3))).tanh() * self.calls


def frozen(model: nn.Module, x: Tensor) -> Callable[[Tensor], Tensor]:
    compiled = torch.compile(model, fullgraph=True)

    def call(x: Tensor) -> Tensor:
        with torch.no_grad():
            found: Tensor = compiled(x)
        return found

    with config.patch(freezing=True, fx_graph_cache=False):
        call(x)
    return call


class Slowed:
    """Forms of which one is the slower one: a second is added to its times. A pause would
    not do, since a busy machine delays the other form by as much."""

    def __init__(self, forms: _C.TwoForms, slower: str) -> None:
        self._forms, self._slower = forms, slower == "kernels"

    def record(self, second: bool, us: float) -> None:
        self._forms.record(second, us + 1e6 * (second == self._slower))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forms, name)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("slower", ["native", "kernels"])
def test_the_faster_form_is_kept_and_the_other_freed(
    xpu: torch.device, made: list[OneOfTwo], slower: str
) -> None:
    model, eager = Layers().eval().to(xpu), Layers().eval()
    eager.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 8, 8)
    call = frozen(model, x.to(xpu))
    (choice,) = made
    lost = weakref.ref(getattr(choice, slower))
    won = getattr(choice, "kernels" if slower == "native" else "native")
    choice._both = cast(_C.TwoForms, Slowed(choice._both, slower))
    before = _C.live_memory()
    eager(x)
    for _ in range(_C.TwoForms.most_calls + 2):  # the two write to the same buffer
        with torch.no_grad():
            expected = eager(x)
        assert_close(call(x.to(xpu)).cpu(), expected, rtol=1e-4, atol=1e-4)
    gc.collect()
    assert lost() is None
    assert choice.native is choice.kernels is won
    if slower == "kernels":
        assert _C.live_memory() < before  # their packed weights


def test_calls_of_several_threads_while_forms_are_measured(
    xpu: torch.device, made: list[OneOfTwo]
) -> None:
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU()).eval().to(xpu)
    inputs = [torch.randn(4, 16).to(xpu) for _ in range(2 * _C.TwoForms.most_calls)]
    call = frozen(model, inputs[0])
    (choice,) = made
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(call, inputs))
    call(inputs[0])  # a thread may have ended its timed call after all others
    assert choice.native is choice.kernels
    for x, found in zip(inputs, results, strict=True):
        assert_close(found, model(x), rtol=1e-5, atol=1e-5)


def test_forms_whose_results_have_other_strides_are_no_choice(
    xpu: torch.device, made: list[OneOfTwo], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile = forms._with_graph

    def turned(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        code, graph = compile(*args, **kwargs)
        strides = [each and each[::-1] for each in graph.output_strides]
        monkeypatch.setattr(graph, "output_strides", strides)
        monkeypatch.setattr(forms, "_with_graph", compile)
        return code, graph

    monkeypatch.setattr(forms, "_with_graph", turned)
    model, x = nn.Linear(16, 32).eval().to(xpu), torch.randn(4, 16).to(xpu)
    assert_close(frozen(model, x)(x), model(x), rtol=1e-5, atol=1e-5)
    assert made == []


class Attention(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return nn.functional.scaled_dot_product_attention(y, y, y)


def test_attention_without_dropout_has_both_forms(
    xpu: torch.device, made: list[OneOfTwo]
) -> None:
    model, x = Attention(16, 16).eval().to(xpu), torch.randn(2, 4, 8, 16).to(xpu)
    call = frozen(model, x)
    (choice,) = made
    for _ in range(2):
        assert_close(call(x), model(x), rtol=1e-4, atol=1e-4)
        choice.native = choice.kernels


class Random(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + torch.rand_like(x)


def test_graphs_of_one_form(xpu: torch.device, made: list[OneOfTwo]) -> None:
    """Random numbers would differ, and primitives are made for known sizes."""
    x = torch.randn(4, 16).to(xpu)
    frozen(Random(16, 16).eval().to(xpu), x)
    with torch._dynamo.config.patch(assume_static_by_default=False):
        torch._dynamo.reset()
        frozen(nn.Linear(16, 16).eval().to(xpu), x)
    with xpurt.kernel_policy("native"):
        torch._dynamo.reset()
        frozen(nn.Linear(16, 16).eval().to(xpu), x)
    assert made == []
