"""xpurt.autocast with a layout computes what torch.autocast computes."""

import threading
from typing import Any

import pytest
import torch
from autocast_networks import (
    DTYPES,
    Images,
    images,
    seen_strides,
    stock,
    tolerance,
    with_layout,
)
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import xpurt
from xpurt.optimization import packed_weights
from xpurt.optimization.autocast.packed_convolution import SMALLEST


def is_channels_last(strides: tuple[int, ...]) -> bool:
    return strides[1] == 1


def compare(
    model: nn.Module, x: Tensor, dtype: torch.dtype, gradients: bool = False
) -> None:
    device = x.device.type
    results = []
    for block in (stock(device, dtype), with_layout(device, dtype)):
        with block:
            y = model(x)
        found = [y]
        if gradients:
            model.zero_grad()
            y.float().square().sum().backward()
            found += [p.grad for p in model.parameters() if p.grad is not None]
        results.append(found)
    for expected, found in zip(*results, strict=True):
        assert expected.dtype == found.dtype
        assert expected.stride() == found.stride()
        scale = expected.detach().abs().max().clamp(min=1e-3).float()
        assert_close(found / scale, expected / scale, **tolerance(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("training", [False, True])
def test_values(axes: int, dtype: torch.dtype, training: bool, device: str) -> None:
    model = Images(axes).train(training).to(device)
    x = images(axes, device)
    with torch.no_grad():
        compare(model, x, dtype)
        compare(model, x, dtype)  # with the kept weights


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("axes", [2, 3])
def test_gradients(axes: int, dtype: torch.dtype, device: str) -> None:
    compare(Images(axes).to(device), images(axes, device), dtype, gradients=True)


def test_on_every_mapping(xpu: torch.device) -> None:
    model, x = Images().eval().to(xpu), images(device="xpu")
    with torch.no_grad():
        compare(model, x, torch.bfloat16)
        compare(model, x, torch.bfloat16)
    compare(model, x, torch.bfloat16, gradients=True)


@pytest.mark.mappings("CPU", "AUTO")
def test_packed_weights_on_every_mapping(xpu: torch.device) -> None:
    model = nn.Conv2d(64, 64, 3, padding=1, stride=2).to(xpu)
    assert model.weight.numel() >= SMALLEST
    x = torch.randn(2, 64, 9, 8, device=xpu)
    with torch.no_grad():
        for each in (x, x, x[:1], x[:, :, 1:]):
            compare(model, each, torch.bfloat16)
        model.weight.neg_()
        compare(model, x, torch.bfloat16)
    _, packs = packed_weights._known[id(model.weight)]
    assert packs is not None
    is_packed = [
        form.numel() == 0 or form.dtype == torch.uint8
        for form in packs[1].by_use.values()
    ]
    assert any(is_packed) == (len(xpurt.mapping.current_placement().ordinals[0]) == 1)


def test_a_recorded_graph_writes_what_the_program_holds(cpu: torch.device) -> None:
    model = nn.Conv2d(64, 64, 3).to(cpu).requires_grad_(False)
    x = torch.randn(1, 64, 6, 6, device=cpu)
    graph = torch.xpu.XPUGraph()
    with with_layout("xpu"):
        before, expected = model(x), model(x)
        with torch.xpu.graph(graph):
            found = model(x)
            with pytest.raises(RuntimeError, match="while a graph is recorded"):
                before.view(-1)
    graph.replay()
    assert_close(found, expected, rtol=0.02, atol=0.02)


def test_images_go_in_channels_last_from_op_to_op(device: str) -> None:
    model = Images().to(device)
    for module in (model.norm, model.second, model.back):
        with seen_strides(module) as found, with_layout(device):
            model(images(device=device))
        assert is_channels_last(found[0])
    with seen_strides(model.second) as found, torch.autocast(device, torch.bfloat16):
        model(images(device=device))
    assert not is_channels_last(found[0])


def test_channels_last_of_the_program_is_kept(device: str) -> None:
    model = nn.Conv2d(3, 8, 3).to(device)
    last = torch.channels_last
    with with_layout(device):
        plain = model(images(device=device))
        of_images = model(images(device=device).to(memory_format=last))
        model.to(memory_format=last)
        of_weights = model(images(device=device))
    assert plain.is_contiguous()
    assert of_images.is_contiguous(memory_format=last)
    assert of_weights.is_contiguous(memory_format=last)


def test_training_converts_the_weight_of_each_step(device: str) -> None:
    losses = []
    for block in (stock(device, torch.bfloat16), with_layout(device)):
        torch.manual_seed(0)
        model, x = Images().to(device), images(device=device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        found = []
        for _ in range(6):
            with block:
                loss = model(x)[:, 0].float().log().neg().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0][-1] < losses[0][0] - 0.1
    assert_close(losses[1], losses[0], rtol=0.02, atol=0.02)


def test_nested_blocks(device: str) -> None:
    model, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)
    inner = nn.Conv2d(8, 8, 3).to(device)
    with with_layout(device):
        y = model(x)
        with torch.autocast(device, enabled=False):
            z = inner(y.float())
            assert z.dtype == torch.float32
            assert z.view(2, -1).shape[1] == 8 * 5 * 4
        with torch.autocast(device, torch.float16):
            assert inner(y).dtype == torch.float16
        with xpurt.autocast(device, enabled=False):
            assert model(x).dtype == torch.float32
        with xpurt.autocast(device, torch.bfloat16), seen_strides(inner) as found:
            inner(model(x))
        assert not is_channels_last(found[0])
        with with_layout(device, torch.float32):
            assert model(x).dtype == torch.float32
        with seen_strides(inner) as found:
            y = inner(model(x))
        assert is_channels_last(found[0])
        assert y.dtype == torch.bfloat16
    with torch.autocast(device, torch.float16), with_layout(device):
        assert model(x).dtype == torch.bfloat16


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_a_block_without_a_device_type_is_for_both(dtype: torch.dtype) -> None:
    for device in ("cpu", "xpu"):
        model, x = Images().to(device), images(device=device)
        second = model.second
        with stock(device, dtype):
            expected = model(x)
        block = xpurt.autocast(dtype=dtype, layout=torch._mkldnn)  # type: ignore[attr-defined]
        with seen_strides(second) as found, torch.no_grad(), block:
            result = model(x)
        with block, xpurt.autocast(enabled=False):
            assert model(x).dtype == torch.float32
        assert is_channels_last(found[0])
        assert result.dtype == expected.dtype
        assert_close(result, expected, **tolerance(dtype))
        assert not torch.is_autocast_enabled(device)


@pytest.mark.parametrize("enabled", [False, True])
def test_enabled_of_blocks_and_decorators(enabled: bool, device: str) -> None:
    model = Images().to(device)
    block = xpurt.autocast(device, None, enabled, layout=torch._mkldnn)  # type: ignore[attr-defined]
    with seen_strides(model.second) as found:
        with block:
            model(images(device=device))
        block(model)(images(device=device))
    assert [is_channels_last(each) for each in found] == [enabled, enabled]


def test_a_decorator_serves_recursive_calls_and_threads(device: str) -> None:
    model, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)

    @with_layout(device)
    def run(depth: int = 1) -> Tensor:
        if depth:
            run(depth - 1)
        y: Tensor = model(x)
        return y

    expected = run()
    assert expected.dtype == torch.bfloat16
    assert expected.is_contiguous()
    found: list[Tensor] = []
    threads = [threading.Thread(target=lambda: found.append(run())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        assert_close(each, expected)
    assert not torch.is_autocast_enabled(device)


def test_a_block_is_of_its_thread() -> None:
    dtypes = []
    model, x = nn.Conv2d(3, 8, 3), images()
    with with_layout("cpu"):
        thread = threading.Thread(target=lambda: dtypes.append(model(x).dtype))
        thread.start()
        thread.join()
    assert dtypes == [torch.float32]


def test_an_error_ends_the_block(device: str) -> None:
    with pytest.raises(ZeroDivisionError), with_layout(device):
        raise ZeroDivisionError
    assert not torch.is_autocast_enabled(device)
    assert not torch._C._is_torch_function_mode_enabled()


def test_custom_functions(device: str) -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type=device, cast_inputs=torch.float32)
        def forward(ctx: Any, x: Tensor) -> Tensor:
            assert x.dtype == torch.float32
            return x.view(2, -1) * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type=device)
        def backward(ctx: Any, *grads: Tensor) -> Tensor:
            return grads[0].view(2, 8, 7, 6) * 2

    model, x = nn.Conv2d(3, 8, 3).to(device), images(device=device)
    with with_layout(device):
        y = Scaled.apply(model(x))
    assert y.dtype == torch.float32
    y.sum().backward()
    assert model.weight.grad is not None


def test_checkpoints(device: str) -> None:
    model, x = Images().to(device), images(device=device)
    grads = []
    for block in (stock(device, torch.bfloat16), with_layout(device)):
        model.zero_grad()
        with block:
            y = checkpoint(model, x, use_reentrant=False)
        y.sum().backward()
        grads.append(model.first.weight.grad)
    assert_close(grads[1], grads[0], rtol=0.1, atol=0.02)


def test_the_gradient_of_the_input_is_plain(device: str) -> None:
    model = nn.Conv2d(3, 8, 3).to(device)
    x, grads = images(device=device).requires_grad_(), []
    for block in (stock(device, torch.bfloat16), with_layout(device)):
        with block:
            y = model(x * 1).float().square().sum()
        (grad,) = torch.autograd.grad(y, [x])
        assert grad.is_contiguous()
        grads.append(grad)
    assert_close(grads[1], grads[0], rtol=0.05, atol=0.1)


def test_tangents_of_forward_mode() -> None:
    model, found = nn.Conv2d(3, 8, 3).requires_grad_(False), []
    x, tangent = images(), images()
    for block in (stock("cpu", torch.bfloat16), with_layout("cpu")):
        with forward_ad.dual_level(), block:
            y = model(forward_ad.make_dual(x, tangent)).relu()
            found.append(forward_ad.unpack_dual(y).tangent)
    assert_close(found[1], found[0])


@pytest.mark.parametrize("op", ["vmap", "grad"])
def test_transforms_of_functions(op: str) -> None:
    weight, x = torch.randn(8, 3, 3, 3), images()
    run = {
        "vmap": lambda: torch.func.vmap(
            lambda each: torch.conv2d(each[None], weight)[0]
        )(x),
        "grad": lambda: torch.func.grad(
            lambda w: torch.conv2d(x, w).float().square().mean()
        )(weight),
    }[op]
    with torch.autocast("cpu", torch.bfloat16):
        expected = run()
    with with_layout("cpu"):
        found = run()
    assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_bad_operands_have_the_errors_of_pytorch(
    dtype: torch.dtype, device: str
) -> None:
    weight, x = torch.randn(8, 3, 3, 3, device=device), images(device=device)
    large = torch.randn(64, 64, 3, 3, device=device)  # packed on xpu
    wide = torch.randn(2, 64, 9, 8, device=device)
    calls: list[tuple[Any, ...]] = [
        (x[:, :2], weight),
        (x, weight, torch.randn(3, device=device)),
        (x[..., :1], weight),
        (wide[:, :32], large),
        (wide, large, None, 1, -1),
        (wide, large, None, 1, 0, 1, 2),
    ]
    if dtype == torch.float32:
        calls.append((x, weight.to(torch.bfloat16)))
    for operands in calls:
        errors = []
        for block in (stock(device, dtype), with_layout(device, dtype)):
            with pytest.raises(RuntimeError) as error, torch.no_grad(), block:
                torch.conv2d(*operands)
            errors.append(str(error.value))
        assert errors[0] == errors[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"device_type": "cuda"}, 'device types "cpu" and "xpu".*torch.autocast'),
        ({"device_type": "xpuu"}, 'Did you mean "xpu"'),
        ({"dtype": torch.int16}, "torch.int8; found torch.int16"),
        ({"dtype": torch.float64}, "found torch.float64.*Leave the dtype out"),
        ({"layout": torch.sparse_coo}, "found torch.sparse_coo.*yourself"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        xpurt.autocast(**{"device_type": "cpu", **arguments})


def test_a_decorator_takes_functions() -> None:
    with pytest.raises(TypeError, match="write `with"):
        xpurt.autocast("cpu")(3)  # type: ignore[arg-type]
