"""Convolutions of 3x3 in compiled training steps, by Winograd's algorithm."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._inductor.utils import run_and_get_code
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.functional.winograd import BLOCKS

pytestmark = [
    pytest.mark.filterwarnings("error:torch.compile runs"),
    pytest.mark.mappings("CPU"),
]


@pytest.fixture(autouse=True)
def native(xpu: torch.device) -> Iterator[None]:
    if not _C.host_reads(xpu.index or 0) or not BLOCKS:
        pytest.skip("the algorithm wants code for the host, and AVX2 or AVX-512")
    with xpurt.kernel_policy("auto"):
        yield


class Block(nn.Module):
    """Two layers of a shape that the algorithm takes, the second one without padding and
    with other channels, and one with a stride."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(32)
        self.second = nn.Conv2d(32, 64, 3, bias=False)
        self.last = nn.Conv2d(64, 16, 3, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm(self.first(x)) + x)
        return self.last(torch.tanh(self.second(y)))


def trained(model: nn.Module, x: Tensor, step: Any) -> list[Tensor]:
    """The result, and the gradients of the input and of the parameters."""
    x = x.clone().requires_grad_()
    result = step(x)
    result.square().mean().backward()
    return [result, *(each.grad for each in (x, *model.parameters()))]


def used(codes: list[str]) -> int:
    return sum(
        code.count("torch.ops.xpurt.winograd_trained.default(") for code in codes
    )


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_results(xpu: torch.device, order: torch.memory_format) -> None:
    torch.manual_seed(0)
    model, x = Block(), torch.randn(9, 32, 22, 17).to(memory_format=order)
    exact = copy.deepcopy(model).double()
    expected = trained(exact, x.double(), exact)
    direct = trained(on_cpu := copy.deepcopy(model), x, on_cpu)
    model, x = model.to(xpu), x.to(xpu)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True)
    found, codes = run_and_get_code(trained, model, x, compiled)
    assert used(codes) == 4
    for ours, theirs, true in zip(found, direct, expected, strict=True):
        assert ours.stride() == theirs.stride()
        # The transforms of two layers, each as in Note [Winograd's numbers].
        atol = 1e-5 * float(true.detach().abs().max())
        assert_close(ours.cpu().double(), true, rtol=0, atol=atol)


def test_direct_where_it_is_not_allowed(xpu: torch.device) -> None:
    """Caches on disk hold the code of the other precision."""
    model, x = Block().to(xpu), torch.randn(8, 32, 16, 16, device=xpu)
    conv: Any = torch.backends.mkldnn.conv  # type: ignore[attr-defined]
    before = conv.fp32_precision
    found = []
    try:
        for precision in (before, "ieee"):
            torch._dynamo.reset()
            conv.fp32_precision = precision
            trained(model, x, torch.compile(model))  # into the caches
            torch._dynamo.reset()
            model.zero_grad()
            with torch.profiler.profile() as profile:
                trained(model, x, torch.compile(model))
            names = {each.name for each in profile.events()}
            found.append("xpurt::winograd_trained" in names)
    finally:
        conv.fp32_precision = before
    assert found == [True, False]


def test_inference_stays_direct(xpu: torch.device) -> None:
    model, x = Block().to(xpu), torch.randn(8, 32, 16, 16, device=xpu)
    torch._dynamo.reset()
    with torch.no_grad():
        _, codes = run_and_get_code(torch.compile(model), x)
    assert used(codes) == 0


def test_few_tiles_stay_direct(xpu: torch.device) -> None:
    """60 tiles per thread, of 4x4, do not pay for the transform of the weight."""
    torch._dynamo.reset()
    model = nn.Conv2d(32, 32, 3, padding=1, bias=False).to(xpu)
    x = torch.randn(4, 32, 12, 20 * torch.get_num_threads(), device=xpu)
    _, codes = run_and_get_code(trained, model, x, torch.compile(model))
    assert used(codes) == 0


@pytest.mark.parametrize(
    ("x", "weight", "padding", "error"),
    [
        ((1, 32, 8, 8), (32, 16, 3, 3), [1, 1], "multiple of 16 input channels"),
        ((1, 16, 8, 8), (32, 16, 5, 5), [1, 1], "weight of 3x3"),
        ((1, 16, 8, 8), (32, 16, 3, 3), [1], "padding of two numbers"),
        ((1, 16, 2, 2), (32, 16, 3, 3), [0, 0], "images of 3x3 or more"),
    ],
)
def test_refusals(
    x: tuple[int, ...], weight: tuple[int, ...], padding: list[int], error: str
) -> None:
    op = torch.ops.xpurt.winograd_trained
    with pytest.raises(ValueError, match=error):
        op(torch.zeros(x), torch.zeros(weight), padding, False)


def test_no_images() -> None:
    op = torch.ops.xpurt.winograd_trained
    found = op(torch.zeros(0, 16, 8, 8), torch.zeros(32, 16, 3, 3), [1, 1], False)
    assert found.shape == (0, 32, 8, 8)
