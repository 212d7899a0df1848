"""Models for inference: the values of the original, whatever happens to them."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from cpu_types import need_bf16
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt_tools.bench.models import GPT, resnet18

pytestmark = pytest.mark.usefixtures("in_optimized_form")
DEVICES = ("cpu", "xpu")


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> torch.device:
    if request.param == "xpu":
        xpurt.set_xpu_mapping("CPU")
    return torch.device(request.param)


class Block(nn.Module):
    """As of a residual network, with what may be fused written as functions."""

    def __init__(self, stride: int = 1) -> None:
        super().__init__()
        self.one = nn.Conv2d(16, 32, 3, stride, 1, bias=False)
        self.norm = nn.BatchNorm2d(32)
        self.two = nn.Conv2d(32, 32, 3, 1, 1, groups=2)
        self.after = nn.BatchNorm2d(32)
        self.shortcut = nn.Sequential(nn.Conv2d(16, 32, 1, stride), nn.BatchNorm2d(32))
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm(self.one(x)))
        y = self.after(self.two(self.drop(y)))
        y += self.shortcut(x)
        return F.relu(y)


def trained(model: nn.Module) -> nn.Module:
    """With statistics and parameters that are not those of the first step."""
    for each in model.modules():
        if isinstance(each, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d):
            assert each.running_mean is not None
            assert each.running_var is not None
            each.running_mean.normal_(0, 0.2)
            each.running_var.uniform_(0.5, 2)
            nn.init.uniform_(each.weight, 0.5, 2)
            nn.init.normal_(each.bias)
    return model.eval()


def block(**given: Any) -> nn.Module:
    torch.manual_seed(0)
    return trained(Block(**given))


IMAGES = torch.randn(2, 16, 9, 9, generator=torch.Generator().manual_seed(1))


def values(model: nn.Module, *args: Any) -> Any:
    with torch.no_grad():
        return model(*args)


def fused(model: nn.Module) -> dict[str, str]:
    return {
        name: what.removeprefix("fused: ")
        for name, what in model.report.done  # type: ignore[union-attr]
        if what.startswith("fused")
    }


def test_what_is_fused() -> None:
    made = xpurt.optimize(block())
    assert fused(made) == {}
    values(made, IMAGES)
    assert fused(made) == {
        "one": "convolution + batch norm + relu",
        "two": "convolution + batch norm + addition + relu",
        "shortcut.0": "convolution + batch norm",
    }


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_values(device: torch.device, stride: int, sample: bool) -> None:
    model, x = block(stride=stride).to(device), IMAGES.to(device)
    made = xpurt.optimize(model, sample_input=x if sample else None)
    assert_close(values(made, x), values(model, x), rtol=1e-5, atol=1e-5)
    last = x.to(memory_format=torch.channels_last)
    assert_close(values(made, last), values(model, x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_each_kind(device: torch.device, axes: int) -> None:
    convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
    norm = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[axes - 1]
    for arguments in (
        {"padding": 1, "dilation": 2},
        {"padding": "same"},
        {"padding": 1, "padding_mode": "circular"},
        {"groups": 4, "bias": False},
    ):
        model = trained(
            nn.Sequential(convolution(4, 8, 3, **arguments), norm(8), nn.SiLU())
        ).to(device)
        x = torch.randn(2, 4, *[7] * axes).to(device)
        made = xpurt.optimize(model)
        assert_close(values(made, x), values(model, x), rtol=1e-4, atol=1e-5)


ACTIVATIONS: list[Callable[[], nn.Module]] = [
    nn.ReLU, nn.ReLU6, nn.Hardtanh, lambda: nn.LeakyReLU(0.3), nn.GELU,
    lambda: nn.GELU("tanh"), nn.SiLU, nn.Sigmoid, nn.Tanh, nn.Hardswish,
]  # fmt: skip


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(device: torch.device, activation: Callable[[], nn.Module]) -> None:
    model = nn.Sequential(
        nn.Linear(6, 5), activation(), nn.Conv1d(4, 3, 1), activation()
    )
    model = model.eval().to(device)
    x = 4 * torch.randn(3, 4, 6).to(device)
    made = xpurt.optimize(model)
    assert_close(values(made, x), values(model, x), rtol=1e-4, atol=1e-5)
    assert set(fused(made)) == {"0", "2"}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_another_type(device: torch.device, dtype: torch.dtype) -> None:
    """As autocast has it, also for what is left as it is."""
    if dtype == torch.bfloat16:
        need_bf16(device)
    model, x = resnet18(10).eval().to(device), torch.randn(2, 3, 16, 16).to(device)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype.itemsize == 2):
        expected = values(model, x)
    made = xpurt.optimize(model, dtype=dtype)
    found = values(made, x)
    assert found.dtype == expected.dtype
    near = 2e-2 if dtype.itemsize == 2 else 1e-5
    assert_close(found, expected, rtol=near, atol=near * float(expected.abs().max()))


def test_tokens(device: torch.device) -> None:
    model = GPT(vocabulary=50, length=8, width=32, heads=4, layers=2).eval().to(device)
    x = torch.randint(50, (2, 8)).to(device)
    made = xpurt.optimize(model, sample_input=x)
    assert "layers.0.mlp.1" in fused(made)
    assert_close(values(made, x), values(model, x), rtol=1e-4, atol=1e-5)


def changed_parameter(model: nn.Module) -> None:
    with torch.no_grad():
        model.one.weight.mul_(1.5)  # type: ignore[union-attr, operator]


def changed_statistics(model: nn.Module) -> None:
    model.norm.running_var.fill_(3.0)  # type: ignore[union-attr, operator]


def loaded(model: nn.Module) -> None:
    torch.manual_seed(5)
    model.load_state_dict(trained(Block()).state_dict())


def another_child(model: nn.Module) -> None:
    model.norm = nn.Identity()


def a_longer_child(model: nn.Module) -> None:
    model.shortcut.append(nn.ReLU())  # type: ignore[union-attr, operator]


@pytest.mark.parametrize(
    "change",
    [changed_parameter, changed_statistics, loaded, another_child, a_longer_child],
)
def test_a_change_after_the_first_call_is_seen(
    change: Callable[[nn.Module], None],
) -> None:
    model = block()
    made = xpurt.optimize(model)
    before = values(made, IMAGES)
    change(model)
    change(made)
    assert_close(values(made, IMAGES), values(model, IMAGES), rtol=1e-5, atol=1e-5)
    assert (values(made, IMAGES) - before).abs().max() > 1e-2


class Switched(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.negative = nn.Linear(4, 4), False

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x).relu()
        return -y if self.negative else y


def test_another_parameter_at_the_address_of_the_old_one() -> None:
    x = torch.randn(4, 8)
    model = xpurt.optimize(nn.Linear(8, 8, bias=False).eval(), sample_input=x)
    memory = torch.zeros(64).numpy()
    for value in (1.0, 2.0):
        memory.fill(value)
        model.weight = nn.Parameter(torch.from_numpy(memory).view(8, 8))
        assert_close(values(model, x), F.linear(x, model.weight.detach()))


def test_an_attribute_that_decides() -> None:
    made, x = xpurt.optimize(Switched().eval()), torch.randn(2, 4)
    one = values(made, x)
    made.negative = True
    assert_close(values(made, x), -one)


def test_the_state_is_loaded_both_ways() -> None:
    model, made = block(), xpurt.optimize(block())
    assert list(made.state_dict()) == list(model.state_dict())
    made.load_state_dict(model.state_dict())
    model.load_state_dict(made.state_dict())
    assert [name for name, _ in made.named_modules()] == [
        name for name, _ in model.named_modules()
    ]
    assert isinstance(made, Block)


def test_copies_are_optimized_and_separate() -> None:
    need_bf16()
    made = xpurt.optimize(block(), dtype=torch.bfloat16)
    expected = values(made, IMAGES)
    through_pickle = pickle.loads(pickle.dumps(made))
    saved = io.BytesIO()
    torch.save(made, saved)
    saved.seek(0)
    copies = [
        copy.deepcopy(made),
        through_pickle,
        torch.load(saved, weights_only=False),
    ]
    for each in copies:
        assert type(each) is type(made)
        assert torch.equal(values(each, IMAGES), expected)
        changed_parameter(each)
        assert not torch.equal(values(each, IMAGES), expected)
    assert torch.equal(values(made, IMAGES), expected)


@pytest.mark.parametrize("watched", ["one", "norm", "shortcut", "after", ""])
def test_hooks_are_called(watched: str) -> None:
    made, seen = xpurt.optimize(block()), []
    values(made, IMAGES)
    module = made.get_submodule(watched)
    handle = module.register_forward_hook(lambda *_: seen.append(watched))
    assert_close(values(made, IMAGES), values(block(), IMAGES), rtol=1e-5, atol=1e-5)
    handle.remove()
    values(made, IMAGES)
    assert seen == [watched]


def test_training_runs_as_written(device: torch.device) -> None:
    model, x = block().to(device), IMAGES.to(device)
    made = xpurt.optimize(model)
    for mode in (True, False):
        results = []
        for each in (model, made):
            torch.manual_seed(3)
            each.train(mode).zero_grad()
            loss = each(x).square().mean()
            loss.backward()
            results.append([loss, *(p.grad for p in each.parameters())])
        # On xpu two calls of one op may take kernels that round differently.
        near = 0 if device.type == "cpu" else 1e-4
        assert_close(*results, rtol=near, atol=near)
    values(made.eval(), x)


def test_under_compile() -> None:
    need_bf16()
    model = block()
    made = xpurt.optimize(model, dtype=torch.bfloat16)
    graphs = []

    def backend(graph: torch.fx.GraphModule, _: list[Tensor]) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled: Any = torch.compile(made, backend=backend, fullgraph=True)
    expected = values(made, IMAGES)
    assert_close(values(compiled, IMAGES), expected, rtol=3e-2, atol=3e-2)
    assert len(graphs) == 1


def test_transforms_and_traces_run_as_written() -> None:
    model, x = block(), IMAGES[None]
    made = xpurt.optimize(model)
    with torch.no_grad():
        found = torch.func.vmap(made)(x)
        traced = torch.jit.trace(made, IMAGES)
    assert_close(found[0], values(model, IMAGES), rtol=1e-5, atol=1e-5)
    assert_close(values(traced, IMAGES), values(model, IMAGES), rtol=1e-5, atol=1e-5)


def test_the_original_stays_but_in_place() -> None:
    model = block()
    assert xpurt.optimize(model) is not model
    assert type(model) is Block
    assert not hasattr(model, "report")
    assert xpurt.optimize(model, inplace=True) is model
    assert type(model.one) is not nn.Conv2d
