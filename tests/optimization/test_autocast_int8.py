"""xpurt.autocast in int8 computes what the layers of xpurt.quantize compute."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from autocast_networks import images
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt.optimization import packed_weights
from xpurt.optimization.autocast import int8_ops

LAYERS: list[Callable[[], nn.Module]] = [
    lambda: nn.Conv1d(3, 6, 3, stride=2, padding=1),
    lambda: nn.Conv2d(3, 6, (3, 2), stride=(1, 2), padding=(1, 0), bias=False),
    lambda: nn.Conv2d(3, 9, 3, dilation=2, groups=3, padding="same"),
    lambda: nn.Conv2d(3, 6, 3, padding="valid"),
    lambda: nn.Conv3d(3, 6, 3, padding=1),
]
KINDS = ["conv1d", "conv2d", "groups", "valid", "conv3d"]


def inputs(layer: Any, device: str) -> Tensor:
    return images(len(layer.kernel_size), device)


def quantized(model: nn.Module) -> nn.Module:
    return xpurt.quantize(nn.Sequential(model).eval(), "dynamic")


def int8(device: str, **given: Any) -> xpurt.autocast:
    return xpurt.autocast(device, dtype=torch.int8, **given)


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("make", LAYERS, ids=KINDS)
@pytest.mark.parametrize("has_layout", [False, True])
def test_convolutions(
    device: str, make: Callable[[], nn.Module], has_layout: bool
) -> None:
    layer = make().eval().to(device)
    x = inputs(layer, device)
    layout = torch._mkldnn if has_layout else torch.strided  # type: ignore[attr-defined]
    with int8(device, layout=layout):
        found = layer(x)
        single = layer(x[0])
    assert torch.equal(found, quantized(layer)(x))
    assert torch.equal(single, quantized(layer)(x[0]))
    assert not torch.equal(found, layer(x))
    assert found.is_contiguous()
    assert single.is_contiguous()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sizes", [(7,), (2, 3, 7)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear_layers(
    device: str, dtype: torch.dtype, sizes: tuple[int, ...], bias: bool
) -> None:
    layer = nn.Linear(7, 5, bias).eval().to(device, dtype)
    x = torch.randn(sizes).to(device, dtype)
    with int8(device):
        found = layer(x)
    assert found.dtype == dtype
    assert torch.equal(found, quantized(layer)(x))
    assert not torch.equal(found, layer(x))


def test_on_every_mapping(xpu: torch.device) -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(168, 5)
    )
    model, x = model.eval().to(xpu), images(device="xpu")
    with int8("xpu"):
        found = model(x)
    assert_close(found, xpurt.quantize(model, "dynamic")(x))


@pytest.mark.parametrize("has_layout", [False, True])
def test_layouts_stay_hidden(device: str, has_layout: bool) -> None:
    layout = torch._mkldnn if has_layout else torch.strided  # type: ignore[attr-defined]
    model = nn.Sequential(nn.ConvTranspose2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3))
    model, x = model.eval().to(device), images(device=device)
    with int8(device, layout=layout):
        found = model(x)
        rows = model(x).view(len(x), -1)
    assert found.is_contiguous()
    assert torch.equal(rows, found.flatten(1))
    columns = nn.Linear(found.shape[-1], 2).to(device)
    with int8(device, layout=layout):
        seen = columns(model(x))
    assert seen.is_contiguous()
    assert_close(seen, xpurt.quantize(columns.eval(), "dynamic")(found))
    last = x.to(memory_format=torch.channels_last)
    with int8(device, layout=layout):
        seen = model[2](model[0](last))
        assert seen.is_contiguous(memory_format=torch.channels_last)
    assert_close(found, xpurt.quantize(model, "dynamic")(x), rtol=1e-2, atol=1e-2)


def test_a_weight_is_quantized_once_per_version(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Tensor] = []
    quantize = int8_ops.int8_per_channel

    def note(weight: Tensor) -> Any:
        made.append(weight)
        return quantize(weight)

    monkeypatch.setattr(int8_ops, "int8_per_channel", note)
    layer, x = nn.Linear(7, 5).to(device), torch.randn(2, 7).to(device)
    for _ in range(3):
        with int8(device):
            layer(x)
    once = len(made)
    layer.weight.mul_(3)
    with int8(device):
        found = layer(x)
    assert (once, len(made)) == (2, 4)  # the values and the scales
    assert torch.equal(found, quantized(layer)(x))
    made.clear()
    with int8(device, cache_enabled=False):
        assert torch.equal(layer(x), found)
        layer(x)
    assert len(made) == 4
    count = packed_weights.count()
    del layer
    assert packed_weights.count() == count - 1


def test_with_gradients_it_stays_in_float32(device: str) -> None:
    layer, x = nn.Linear(7, 5).to(device), torch.randn(2, 7).to(device)
    with torch.enable_grad():
        with int8(device):
            found = layer(x)
        expected = layer(x)
        assert torch.equal(found, expected)
        grads = []
        for each in (found, expected):
            layer.zero_grad()
            each.square().sum().backward()
            assert layer.weight.grad is not None
            grads.append(layer.weight.grad.clone())
        assert torch.equal(*grads)
        frozen = layer.requires_grad_(False)
        with int8(device):
            assert torch.equal(frozen(x), quantized(layer)(x))


def infinite() -> nn.Module:
    layer = nn.Linear(7, 5)
    layer.weight[1, 2] = float("inf")
    return layer


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (infinite, (2, 7)),
        (lambda: nn.Linear(7, 5).double(), (2, 7)),
        (lambda: nn.Linear(7, 5), (0, 7)),
        (lambda: nn.Conv2d(3, 4, 2, padding="same"), (2, 3, 5, 5)),
        (lambda: nn.ConvTranspose2d(3, 4, 2), (2, 3, 5, 5)),
        (lambda: nn.MultiheadAttention(8, 2).eval(), (3, 2, 8)),
    ],
    ids=["infinite", "float64", "empty", "uneven padding", "transposed", "attention"],
)
def test_what_stays(
    device: str, make: Callable[[], nn.Module], sizes: tuple[int, ...]
) -> None:
    """As of xpurt.quantize."""
    layer = make().to(device)
    kind = next(layer.parameters()).dtype
    x = torch.randn(sizes).to(device, kind)
    args = (x, x, x) if isinstance(layer, nn.MultiheadAttention) else (x,)
    with int8(device):
        found = layer(*args)
    if isinstance(layer, nn.MultiheadAttention):
        found, expected = found[0], layer(*args)[0]
    else:
        expected = layer(*args)
    assert found.shape == expected.shape
    near = 5e-2 if isinstance(layer, nn.MultiheadAttention) else 0
    assert_close(found, expected, rtol=near, atol=near, equal_nan=True)


def test_activations_that_are_not_finite(device: str) -> None:
    """They make their own row so, as by xpurt.quantize."""
    layer, x = nn.Linear(7, 5).to(device), torch.randn(3, 7).to(device)
    x[1, 2] = float("nan")
    with int8(device):
        found = layer(x)
    assert found[1].isnan().all()
    assert found[[0, 2]].isfinite().all()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.linear(x, x.new_ones(4, 3)),
        lambda x: F.linear(x, x.new_ones(4, 7), x.new_ones(3)),
        lambda x: F.conv2d(x, x.new_ones(2, 3, 2, 2)),
        lambda x: F.conv1d(x[None], x.new_ones(2, 2, 3), stride=0),
    ],
)
def test_errors_are_those_of_pytorch(
    device: str, call: Callable[[Tensor], Any]
) -> None:
    x = torch.randn(2, 7).to(device)
    errors = []
    for enabled in (False, True):
        with pytest.raises(RuntimeError) as error, int8(device, enabled=enabled):
            call(x)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


def test_blocks_within_blocks(device: str) -> None:
    layer, x = nn.Linear(7, 5).eval().to(device), torch.randn(2, 7).to(device)
    exact, small = layer(x), quantized(layer)(x)
    with int8(device):
        with xpurt.autocast(device, enabled=False):
            assert torch.equal(layer(x), exact)
        with torch.autocast(device, dtype=torch.bfloat16):
            assert layer(x).dtype is torch.bfloat16
        assert torch.equal(layer(x), small)
    assert torch.equal(layer(x), exact)
    with xpurt.autocast(device, dtype=torch.bfloat16):
        with int8(device):
            assert torch.equal(layer(x), small)
        assert layer(x).dtype is torch.bfloat16
    assert torch.equal(int8(device)(layer.forward)(x), small)
    other = "xpu" if device == "cpu" else "cpu"
    with int8(other):
        assert torch.equal(layer(x), exact)


def test_other_threads_are_as_they_were() -> None:
    layer, x = nn.Linear(7, 5), torch.randn(2, 7)
    found: list[Tensor] = []

    def run() -> None:
        with torch.no_grad():
            found.append(layer(x))

    with int8("cpu"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert torch.equal(found[0], layer(x))


@pytest.mark.parametrize("inside", [True, False])
def test_a_compiled_program_is_refused(inside: bool) -> None:
    layer, x = nn.Linear(7, 5), torch.randn(2, 7)

    def program(x: Tensor) -> Any:
        if not inside:
            return layer(x)
        with int8("cpu"):
            return layer(x)

    compiled = torch.compile(program, backend="eager", fullgraph=True)
    around = int8("cpu", enabled=not inside)
    with pytest.raises(Exception, match=r"xpurt.quantize\(model\)"), around:
        compiled(x)
    torch._dynamo.reset()
