"""Convolutions of compiled graphs: what is computed with them, packed weights, and
images that stay in blocks of channels."""

import copy
import gc
from collections.abc import Callable

import pytest
import torch
from cpu_types import has_bf16
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.utils import run_and_get_code
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.mapping import current_placement

pytestmark = pytest.mark.filterwarnings("error:torch.compile runs")

FUSED = "xpurt::fused_convolution"
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardswish": F.hardswish,
    "clamp": F.relu6,
    "leaky_relu": F.leaky_relu,
}


class Residual(nn.Module):
    """Channels 3 are no block of channels, 32 are."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1)
        self.norm = nn.BatchNorm2d(32)
        self.second = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.third = nn.Conv2d(32, 32, 3, stride=2, groups=2, dilation=2)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        y = self.activation(self.norm(self.first(x)))
        y = self.pool(self.activation(y + self.second(y)))
        return self.third(y)


def compiled_code(
    model: nn.Module, x: Tensor, *, policy: str = "sycl", frozen: bool = True
) -> tuple[Tensor, str, int]:
    """The result, the generated code, and the number of fused convolutions of a call."""
    torch._dynamo.reset()
    with (
        torch.no_grad(),
        config.patch(freezing=frozen),
        xpurt.kernel_policy(policy),
    ):
        compiled = torch.compile(model, fullgraph=True)
        _, codes = run_and_get_code(compiled, x)
        before = _calls(FUSED)
        found = compiled(x)
    return found, "\n".join(codes), _calls(FUSED) - before


def _calls(op: str) -> int:
    return sum(calls for name, _, _, calls, *_ in _C.op_report() if name == op)


def has_primitives(device: torch.device, dtype: torch.dtype = torch.float32) -> bool:
    """A CPU without AVX-512 has none of bfloat16."""
    placement = current_placement().ordinals[device.index or 0]
    return (
        len(placement) == 1
        and _C.host_reads(device.index or 0)
        and (dtype != torch.bfloat16 or has_bf16())
    )


def model_on(xpu: torch.device, dtype: torch.dtype, activation: str) -> nn.Module:
    return Residual(ACTIVATIONS[activation]).eval().to(xpu, dtype)


# Each takes seconds of a C++ compiler.
EACH_ACTIVATION = [
    pytest.param(
        each,
        marks=[] if each in ("relu", "gelu", "silu") else [pytest.mark.slow],
    )
    for each in ACTIVATIONS
]


@pytest.mark.parametrize("activation", EACH_ACTIVATION)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_activations(xpu: torch.device, activation: str, dtype: torch.dtype) -> None:
    if dtype == torch.bfloat16 and activation not in ("relu", "gelu"):
        pytest.skip("two activations in bfloat16 suffice")
    if activation not in ("relu", "silu") and not has_primitives(xpu):
        pytest.skip("the graph is as without the pass here; two activations suffice")
    model = model_on(xpu, dtype, activation)
    x = torch.randn(2, 3, 12, 12).to(xpu, dtype)
    found, code, calls = compiled_code(model, x)
    expected = copy.deepcopy(model).cpu().float()(x.cpu().float())
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    assert_close(found.cpu().float(), expected, rtol=tolerance, atol=tolerance)
    assert found.stride() == model(x).stride()
    if has_primitives(xpu, dtype):
        assert calls == 3
        assert code.count(f"'{activation}'") == 2


def test_without_freezing_convolutions_are_as_in_eager_mode(xpu: torch.device) -> None:
    """The primitive's ReLU makes 0 of NaN."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).to(xpu)
    x = torch.randn(2, 3, 12, 12)
    x[0, 0, 0, 0] = torch.nan
    x = x.to(xpu)
    found, _, calls = compiled_code(model, x, frozen=False)
    assert_close(found, model(x), rtol=1e-5, atol=1e-5, equal_nan=True)
    assert bool(found.isnan().any())
    assert calls == 0


class Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 16, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.convolution(x)
        return y.relu(), y


def test_a_value_that_others_read_is_not_fused(xpu: torch.device) -> None:
    model, x = Both().to(xpu), torch.randn(2, 3, 12, 12).to(xpu)
    (activated, plain), _, _ = compiled_code(model, x)  # type: ignore[misc]
    expected = model.convolution(x)
    assert_close(plain, expected, rtol=1e-5, atol=1e-5)
    assert_close(activated, expected.relu(), rtol=1e-5, atol=1e-5)


@pytest.mark.mappings("CPU")
def test_weights_are_packed_constants(xpu: torch.device) -> None:
    if not has_primitives(xpu):
        pytest.skip("there are no primitives here")
    model = model_on(xpu, torch.float32, "relu")
    x = torch.randn(2, 3, 12, 12).to(xpu)
    _, code, _ = compiled_code(model, x)
    arguments = [line for line in code.split("\n") if "= torch.ops.xpurt.fused" in line]
    assert len(arguments) == 3
    assert all("_packed_" in line for line in arguments)


@pytest.mark.parametrize("policy", ["sycl", "auto"])
def test_constants_are_freed_with_the_code(xpu: torch.device, policy: str) -> None:
    before = _C.live_memory()
    model = model_on(xpu, torch.float32, "relu")
    with config.patch(fx_graph_cache=False):
        compiled_code(model, torch.randn(2, 3, 12, 12).to(xpu), policy=policy)
    del model
    torch._dynamo.reset()
    gc.collect()
    assert _C.live_memory() == before


def test_code_from_the_cache_has_the_weights_of_its_model(xpu: torch.device) -> None:
    x = torch.randn(2, 3, 12, 12).to(xpu)
    for _ in range(2):
        model = model_on(xpu, torch.float32, "relu")
        counters.clear()
        found, _, _ = compiled_code(model, x)
        with torch.no_grad():
            assert_close(found, model(x), rtol=1e-4, atol=1e-5)
    if has_primitives(xpu):
        assert counters["inductor"]["fxgraph_cache_hit"] == 1


@pytest.mark.mappings("CPU")
def test_images_stay_in_blocks(xpu: torch.device) -> None:
    """Between convolutions, no kernel reads or writes them."""
    if not has_primitives(xpu):
        pytest.skip("there are no primitives here")
    layers = [nn.Conv2d(32, 32, 3), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Conv2d(32, 32, 3)).eval().to(xpu)
    x = torch.randn(2, 32, 12, 12).to(xpu)
    found, code, calls = compiled_code(model, x)
    assert_close(found, model(x), rtol=1e-5, atol=1e-5)
    assert calls == 3
    # One kernel brings the input into blocks, one the result out of them.
    assert code.count("__kernel void") <= 2


def direct(x: Tensor, weight: Tensor, sizes: list[int], **changed: object) -> Tensor:
    arguments: dict[str, object] = {
        "bias": None, "other": None, "weight_sizes": sizes, "stride": [1, 1],
        "padding": [0, 0], "dilation": [1, 1], "groups": 1, "activation": "none",
        "alpha": 0.0, "beta": 0.0, "input_format": 0, "format": 0,
    }  # fmt: skip
    arguments.update(changed)
    result: Tensor = torch.ops.xpurt.fused_convolution(x, weight, **arguments)
    return result


@pytest.mark.parametrize("activation", ["none", *ACTIVATIONS])
def test_the_op_on_any_device(xpu: torch.device, activation: str) -> None:
    """Where no primitive runs, PyTorch's ops compute it: in blocks, too."""
    x, other = torch.randn(2, 16, 6, 6), torch.randn(2, 16, 4, 4)
    weight, bias = torch.randn(16, 16, 3, 3) / 9, torch.randn(16)
    numbers = {"clamp": (0.0, 6.0), "leaky_relu": (0.01, 0.0)}.get(
        activation, (0.0, 0.0)
    )
    expected = F.conv2d(x, weight, bias) + other
    if activation != "none":
        expected = ACTIVATIONS[activation](expected)

    def blocks(images: Tensor) -> Tensor:
        return images.unflatten(1, (-1, 16)).movedim(2, -1).contiguous().to(xpu)

    for format in (0, 1, 16):
        shaped = blocks if format == 16 else lambda images: images.to(xpu)
        found = direct(
            shaped(x), weight.to(xpu), [16, 16, 3, 3], bias=bias.to(xpu),
            other=shaped(other), activation=activation, alpha=numbers[0],
            beta=numbers[1], input_format=format, format=format,
        )  # fmt: skip
        if format == 16:
            assert found.shape == (2, 1, 4, 4, 16)
            found = found.movedim(-1, 2).flatten(1, 2)
        assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)


def test_wrong_arguments_of_the_op(xpu: torch.device) -> None:
    x, weight = torch.randn(1, 4, 6, 6).to(xpu), torch.randn(4, 4, 3, 3).to(xpu)
    with pytest.raises(ValueError, match="does not fit the input"):
        direct(x, weight, [4, 5, 3, 3])
    with pytest.raises(ValueError, match="no activation is called softsign"):
        direct(x, weight, [4, 4, 3, 3], activation="softsign")
    with pytest.raises(ValueError, match="is empty"):
        direct(x, weight, [4, 4, 9, 9])
    with pytest.raises(ValueError, match="stride, padding and dilation have 2"):
        direct(x, weight, [4, 4, 3, 3], stride=[1])
    with pytest.raises(ValueError, match="takes at least 576 bytes; found 0"):
        direct(x, weight.new_empty(0), [4, 4, 3, 3])
    with pytest.raises(ValueError, match="its sizes are given as"):
        direct(x, weight, [4, 4, 1, 1])
    with pytest.raises(ValueError, match="a bias of 4 elements fits"):
        direct(x, weight, [4, 4, 3, 3], bias=torch.ones(5).to(xpu))
    with pytest.raises(ValueError, match="the tensor to add is"):
        direct(x, weight, [4, 4, 3, 3], other=x)
