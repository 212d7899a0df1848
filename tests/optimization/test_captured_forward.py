"""Graphs that guards protect: what a model's forward depends on is seen in each call."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt.optimization import packed_weights

pytestmark = pytest.mark.usefixtures("in_optimized_form")


def activated(x: Any) -> Any:
    """As a helper in a model's file."""
    return F.relu(x) if isinstance(x, Tensor) else x


class Config:
    act = "relu"


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.child = nn.LeakyReLU(0.1)
        self.cfg, self.config = {"act": "relu"}, Config()

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = activated(self.bn(self.conv(x)))
        return made


class LeakyChild(Model):
    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.child(self.conv(x))
        return made


class ByDict(Model):
    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return F.relu(y) if self.cfg["act"] == "relu" else torch.tanh(y)


class ByConfig(Model):
    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return F.relu(y) if self.config.act == "relu" else torch.tanh(y)


class IsTensor(Model):
    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        return F.relu(y) if torch.is_tensor(y) else y


IMAGES = torch.randn(2, 3, 6, 6, generator=torch.Generator().manual_seed(1))


def same(made: nn.Module, model: nn.Module, *args: Tensor) -> Tensor:
    with torch.no_grad():
        found, expected = made(*args), model(*args)
    assert_close(found, expected, rtol=1e-5, atol=1e-5)
    return found  # type: ignore[no-any-return]


def slope(model: Any) -> None:
    model.child.negative_slope = 0.9


def eps(model: Any) -> None:
    model.bn.eps = 2.0


def in_a_dict(model: Any) -> None:
    model.cfg["act"] = "tanh"


def in_an_object(model: Any) -> None:
    model.config.act = "tanh"


def method(model: Any) -> None:
    model.child.forward = lambda x: x * 5


CHANGES: list[tuple[type[nn.Module], Callable[[Any], None]]] = [
    (LeakyChild, slope), (Model, eps), (ByDict, in_a_dict), (ByConfig, in_an_object),
    (LeakyChild, method),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change"), CHANGES)
def test_what_a_forward_reads_may_change(
    kind: type[nn.Module], change: Callable[[Any], None]
) -> None:
    model = kind().eval()
    made = xpurt.optimize(model)
    before = same(made, model, IMAGES)
    change(model)
    change(made)
    assert (same(made, model, IMAGES) - before).abs().max() > 1e-3


class TwoEps(Model):
    """The same parameters, folded in two ways."""

    def forward(self, x: Tensor) -> Tensor:
        norm = self.bn
        given = norm.running_mean, norm.running_var, norm.weight, norm.bias
        one, two = (
            F.batch_norm(self.conv(x), *given, training=False, eps=each)
            for each in (1e-5, 2.0)
        )
        return one * 2 + two


def test_one_norm_with_two_eps() -> None:
    model = TwoEps().eval()
    made: Any = xpurt.optimize(model)
    same(made, model, IMAGES)
    assert sum("batch norm" in what for _, what in made.report.done) == 2


def test_nothing_is_captured_with_gradients() -> None:
    model = Model().eval()
    made = xpurt.optimize(model)
    counters.clear()
    assert_close(made(IMAGES), model(IMAGES))
    assert not counters["frames"]
    same(made, model, IMAGES)
    assert counters["frames"]


class OfTheBatch(Model):
    """Its norm takes the statistics of the batch in evaluation mode, too."""

    def forward(self, x: Tensor) -> Tensor:
        norm = self.bn
        given = norm.running_mean, norm.running_var, norm.weight, norm.bias
        return F.relu(F.batch_norm(self.conv(x), *given, training=True))


def test_a_norm_of_the_batch_is_not_folded() -> None:
    model = OfTheBatch().eval()
    made: Any = xpurt.optimize(model)
    for _ in range(2):
        same(made, model, IMAGES)
    assert_close(made.bn.running_mean, model.bn.running_mean)


class Grouped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1, groups=2)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv(x) + x)


def test_an_addition_to_a_convolution_of_groups() -> None:
    model = Grouped().eval()
    made = xpurt.optimize(model)
    x = torch.randn(2, 4, 6, 6).to(memory_format=torch.channels_last)
    same(made, model, x)


def test_a_weight_that_is_no_parameter_is_not_packed() -> None:
    """FullyShardedDataParallel puts a view of its memory in the place of the parameter,
    and writes there without a count."""
    model = nn.Linear(4, 3).eval()
    made: Any = xpurt.optimize(model)
    weight = made.weight.detach().clone()
    for each in (model, made):
        del each._parameters["weight"]
        each.weight = weight
    x = torch.randn(2, 4)
    same(made, model, x)
    weight.data.mul_(2)
    same(made, model, x)


def test_a_parameter_that_is_never_packed() -> None:
    weight = nn.Parameter(torch.ones(2, 2), False)
    assert packed_weights.may_be_packed(weight)
    packed_weights.never_pack(weight)
    assert not packed_weights.may_be_packed(weight)
    packs = [packed_weights.packed((weight,), "use", lambda: object()) for _ in "ab"]
    assert packs[0] is not packs[1]


def test_weights_of_inference_mode() -> None:
    with torch.inference_mode():
        model = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval()
        made = xpurt.optimize(model)
    for _ in range(2):
        same(made, model, torch.randn(2, 3))


@pytest.mark.parametrize("kind", [Model, IsTensor])
def test_helpers_that_ask_for_types(kind: type[nn.Module]) -> None:
    model = kind().eval()
    made: Any = xpurt.optimize(model)
    assert (same(made, model, IMAGES) == 0).any()
    assert any("relu" in what for _, what in made.report.done)


def test_side_effects_of_helpers_happen_in_each_call() -> None:
    seen: list[int] = []

    def noted(x: Tensor) -> Tensor:
        seen.append(len(x))
        return x

    class Notes(Model):
        def forward(self, x: Tensor) -> Tensor:
            return F.relu(noted(self.conv(x)))

    model = Notes().eval()
    made = xpurt.optimize(model)
    for _ in range(3):
        same(made, model, IMAGES)
    assert seen == [2] * 6


def test_hooks_of_all_modules_are_called() -> None:
    model, seen = Model().eval(), []
    made = xpurt.optimize(model)
    same(made, model, IMAGES)
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, *_: seen.append(type(module).__name__)
    )
    try:
        same(made, model, IMAGES)
    finally:
        handle.remove()
    assert seen == ["Conv2d", "BatchNorm2d", "Model"] * 2


def test_a_class_that_changes() -> None:
    class Late(Model):
        def forward(self, x: Tensor) -> Tensor:
            return F.relu(self.conv(x))

    model = Late().eval()
    made = xpurt.optimize(model)
    same(made, model, IMAGES)
    Late.forward = lambda self, x: self.conv(x) * 3  # type: ignore[method-assign]
    assert (same(made, model, IMAGES) < 0).any()


def test_modules_that_share_code_have_graphs_of_their_own() -> None:
    """More of them than the forms of one code that Dynamo keeps."""
    for slope in range(20):
        model = nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(slope / 20)).eval()
        made: Any = xpurt.optimize(model)
        same(made, model, torch.randn(3, 4))
        assert ("0", "fused: linear layer + leaky_relu") in made.report.done


def test_more_forms_than_are_kept_run_as_written() -> None:
    class ByNumber(Model):
        def forward(self, x: Tensor, name: str) -> Tensor:
            return F.relu(self.conv(x)) * len(name)

    model = ByNumber().eval()
    made = xpurt.optimize(model)
    for count in range(20):
        same(made, model, IMAGES, "x" * count)  # type: ignore[arg-type]


def test_an_addition_that_writes_to_a_value_that_is_read() -> None:
    class Adds(Model):
        def forward(self, x: Tensor) -> Any:
            total = torch.zeros(2, 4, 4, 4)
            before, part = total, total[:1]
            total += self.conv(x)
            return before + 1, part

    model = Adds().eval()
    same(xpurt.optimize(model), model, IMAGES)


def test_a_layer_that_is_added_to_itself() -> None:
    class Doubles(Model):
        def forward(self, x: Tensor) -> Any:
            y = self.conv(x)
            return F.relu(y + y)

    model = Doubles().eval()
    same(xpurt.optimize(model), model, IMAGES)


def test_gradients_that_a_forward_enables() -> None:
    class Enables(Model):
        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                y = F.relu(self.conv(x)).sum()
                (grad,) = torch.autograd.grad(y, [self.conv.weight])
            return grad

    model = Enables().eval()
    same(xpurt.optimize(model), model, IMAGES)


def test_autocast_within_a_forward() -> None:
    class Casts(Model):
        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = self.conv(x)
            return F.relu(y)

    model = Casts().eval()
    with torch.no_grad():
        found, expected = xpurt.optimize(model)(IMAGES), model(IMAGES)
    assert found.dtype is expected.dtype
    assert_close(found, expected, rtol=2e-2, atol=2e-2)


def test_threads_may_call_a_model_first() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).eval()
    made, x = xpurt.optimize(model), torch.randn(4, 8)
    found: list[Tensor] = []

    def call() -> None:
        with torch.no_grad():
            found.extend(made(x) for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(found) == 80
    with torch.no_grad():
        assert_close(found, [model(x)] * 80, rtol=1e-5, atol=1e-5)


def test_a_model_that_is_dropped_frees_its_memory(xpu: torch.device) -> None:
    before = torch.xpu.memory_allocated()
    for sample in (None, torch.randn(2, 3, 8, 8, device=xpu)):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
        made = xpurt.optimize(model.eval().to(xpu), sample_input=sample)
        with torch.no_grad():
            made(torch.randn(2, 3, 8, 8, device=xpu))
        del model, made, sample
    assert torch.xpu.memory_allocated() == before
