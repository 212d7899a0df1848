"""torch.compile inside and around blocks of autocast with a layout."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from autocast_networks import Images, images, stock, with_layout
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

from xpurt import _layouts

DTYPES = [torch.bfloat16, torch.float32]


@pytest.fixture(autouse=True)
def without_other_programs() -> None:
    torch._dynamo.reset()


def compiled(function: Callable[..., Any], backend: Any = "aot_eager") -> Any:
    return torch.compile(function, backend=backend, fullgraph=True)


def flat(model: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = model(x)
    return y.view(len(x), -1)


def expected(model: nn.Module, x: Tensor, dtype: torch.dtype) -> Tensor:
    with stock(x.device.type, dtype):
        return flat(model, x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("form", ["inside", "around", "decorated"])
def test_a_graph_without_breaks(form: str, dtype: torch.dtype, device: str) -> None:
    model = Images().eval().to(device)
    x = images(device=device)

    def inside(x: Tensor) -> Tensor:
        with with_layout(device, dtype):
            return flat(model, x)

    if form == "inside":
        found = compiled(inside)(x)
    elif form == "around":
        with with_layout(device, dtype):
            found = compiled(flat)(model, x)
    else:
        found = compiled(with_layout(device, dtype)(flat))(model, x)
    wanted = expected(model, x, dtype)
    assert found.dtype == wanted.dtype
    assert_close(found, wanted, rtol=0.02, atol=0.02)
    assert not torch.is_autocast_enabled(device)
    assert not torch._C._is_torch_function_mode_enabled()


def test_gradients(device: str) -> None:
    model = Images().to(device)
    x, grads = images(device=device), []
    for block, run in (
        (stock(device, torch.bfloat16), flat),
        (with_layout(device), compiled(flat)),
    ):
        model.zero_grad()
        with block:
            y = run(model, x)
        y[:, 0].float().log().sum().backward()
        grads.append(model.head.weight.grad)
    assert_close(grads[1], grads[0], rtol=0.1, atol=0.05)


def test_blocks_share_a_graph(device: str) -> None:
    counter = CompileCounterWithBackend("aot_eager")
    model, x = Images().eval().to(device), images(device=device)
    run = compiled(flat, counter)
    for _ in range(3):
        with torch.no_grad(), with_layout(device):
            run(model, x)
    assert counter.frame_count == 1


@pytest.mark.rest
def test_by_inductor() -> None:
    model, x = (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)),
        images(),
    )

    def inside(x: Tensor) -> Tensor:
        with with_layout("cpu"):
            return flat(model, x)

    found = compiled(inside, "inductor")(x)
    assert_close(found, expected(model, x, torch.bfloat16), rtol=0.02, atol=0.02)


def test_a_compiled_part_of_a_program(device: str) -> None:
    """Beside eager ops, which go on in channels last, as its result does."""
    first = nn.Conv2d(3, 8, 3).to(device)
    second = nn.Conv2d(8, 4, 3).to(device)
    part, x = compiled(lambda y: y.relu() + 1), images(device=device)
    with torch.no_grad():
        with with_layout(device):
            y = part(first(x))
            z = second(y)
            assert z.flatten(1).shape == (2, 4 * 5 * 4)
        with torch.autocast(device, torch.bfloat16):
            wanted = second(first(x).relu() + 1)
    assert_close(z, wanted, rtol=0.05, atol=0.05)


def test_the_mode_leaves_programs_that_are_traced_alone() -> None:
    model, x = nn.Conv2d(3, 8, 3), images()
    with with_layout("cpu"):
        graph = torch.fx.experimental.proxy_tensor.make_fx(lambda x: model(x).relu())(x)
        assert _layouts.count_temporaries() == 0
    assert graph(x).dtype == torch.bfloat16
    exported = torch.export.export(model, (x,))
    assert exported.module()(x).shape == (2, 8, 7, 6)
