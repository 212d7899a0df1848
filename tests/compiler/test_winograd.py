"""Convolutions of 3x3 by Winograd's algorithm, in graphs with frozen parameters."""

import copy
from typing import Any

import pytest
import torch
from test_fused_convolutions import compiled_code, has_primitives
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

from xpurt.compiler import inductor_hook
from xpurt.functional.winograd import BLOCKS
from xpurt.optimization.primitives import types_of_cpu

pytestmark = [
    pytest.mark.filterwarnings("error:torch.compile runs"),
    pytest.mark.mappings("CPU"),
]


@pytest.fixture
def lanes(xpu: torch.device, monkeypatch: pytest.MonkeyPatch) -> torch.device:
    """A device for which the algorithm is compiled, in the form of kernels."""
    if not has_primitives(xpu) or not BLOCKS:
        pytest.skip("the algorithm wants AVX2 or AVX-512")
    monkeypatch.setattr(inductor_hook, "form_of", lambda *_: inductor_hook.Form.SYCL)
    return xpu


class Residual(nn.Module):
    """The second convolution is added to another value, and the third one has no bias, no
    activation and no padding."""

    def __init__(self, channels: int = 64) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, 64, 3, padding=1)
        self.second = nn.Conv2d(64, 64, 3, padding=1)
        self.third = nn.Conv2d(64, 32, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first(x))
        return self.third(F.relu(self.second(y) + y))


def used(code: str) -> int:
    return code.count("= torch.ops.xpurt.winograd_conv2d")


@pytest.mark.parametrize(
    "sizes", [(1, 64, 33, 30), (5, 64, 20, 24)], ids=["cut tiles", "several images"]
)
def test_results(lanes: torch.device, sizes: tuple[int, ...]) -> None:
    model, x = Residual().eval(), torch.randn(sizes)
    expected = copy.deepcopy(model).double()(x.double()).float()
    model = model.to(lanes)
    found, code, _ = compiled_code(model, x.to(lanes), policy="auto")
    assert used(code) == 3
    assert_close(found.cpu(), expected, rtol=1e-5, atol=1e-5)
    assert found.stride() == model(x.to(lanes)).stride()


def test_relu_keeps_nan(lanes: torch.device) -> None:
    x = torch.randn(1, 64, 32, 32)
    x[0, 0, 5, 5] = torch.nan
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).eval()
    found, code, _ = compiled_code(model.to(lanes), x.to(lanes), policy="auto")
    assert used(code) == 1
    assert bool(found[0, :, 4:7, 4:7].isnan().all())


def test_direct_convolutions_if_asked(lanes: torch.device) -> None:
    model, x = Residual().eval().to(lanes), torch.randn(1, 64, 32, 32).to(lanes)
    conv: Any = torch.backends.mkldnn.conv  # type: ignore[attr-defined]
    before = conv.fp32_precision
    conv.fp32_precision = "ieee"
    try:
        _, code, calls = compiled_code(model, x, policy="auto")
    finally:
        conv.fp32_precision = before
    assert used(code) == 0
    assert calls == 3


def test_the_policy_for_kernels_on_the_queue(lanes: torch.device) -> None:
    model, x = Residual().eval().to(lanes), torch.randn(1, 64, 32, 32).to(lanes)
    _, code, calls = compiled_code(model, x, policy="sycl")
    assert used(code) == 0
    assert calls == 3


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "convolution",
    [
        nn.Conv2d(64, 64, 3, padding=1, stride=2),
        nn.Conv2d(64, 64, 3, padding=2, dilation=2),
        nn.Conv2d(64, 64, 3, padding=1, groups=2),
        nn.Conv2d(64, 64, 3, padding=1, dtype=torch.bfloat16),
        nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Tanh()),
    ],
    ids=["stride", "dilation", "groups", "bfloat16", "tanh"],
)
def test_other_convolutions_are_direct(
    lanes: torch.device, convolution: nn.Module
) -> None:
    # A copy: the parameter of the test outlives the mapping.
    convolution = copy.deepcopy(convolution).eval().to(lanes)
    dtype = next(convolution.parameters()).dtype
    x = torch.randn(2, 64, 48, 48).to(lanes, dtype)
    _, code, calls = compiled_code(convolution, x, policy="auto")
    assert used(code) == 0
    assert calls == (dtype in types_of_cpu())  # else the graph has PyTorch's op
