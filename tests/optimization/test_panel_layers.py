"""Linear layers by products of panels: the values of float64, and which calls they are
for."""

from typing import Any

import pytest
import torch
from ops_that_run import Ops
from own_process import run
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt.functional import panels
from xpurt.functional.activations import NONE, Activation
from xpurt.functional.panels import pack_panels
from xpurt.functional.winograd import BLOCKS, PANEL
from xpurt.optimization import fused_linear

RELU = Activation("relu")
# Sums of products of standard deviation 1 in blocks of 256 channels.
TOLERANCE = 1e-5

with_panels = pytest.mark.skipif(
    not BLOCKS, reason="products of panels want AVX2 or AVX-512"
)


def layer(columns: int, inner: int, device: str = "cpu") -> list[Any]:
    made = torch.randn(columns, inner) / inner**0.5, torch.randn(columns)
    return [torch.nn.Parameter(each.to(device)) for each in made]


def ones() -> list[Any]:
    """A layer of one channel that copies it to a panel."""
    return [torch.nn.Parameter(torch.ones(PANEL, 1)), None]


def values(x: Tensor, *rest: Any) -> tuple[Tensor, bool]:
    with torch.no_grad(), Ops() as ops:
        y = fused_linear.linear(x, *rest)
    return y, "panel_linear" in ops.names


@with_panels
@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [
        (2, 7, 32),
        (5, 600, 96),
        (200, 33, 32),
        (577, 256, 160),
        (3, 1, 3200),
        (200, 300, 501),
    ],
)
@pytest.mark.parametrize(
    "activation", [NONE, RELU, Activation("gelu"), Activation("silu")]
)
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_values(
    device: str,
    rows: int,
    inner: int,
    columns: int,
    activation: Activation,
    adds: bool,
    biased: bool,
) -> None:
    weight, bias = layer(columns, inner, device)
    x = torch.randn(1, rows, inner)
    other = torch.randn(1, rows, columns) if adds else None
    found, used = values(
        x.to(device),
        weight,
        bias if biased else None,
        None if other is None else other.to(device),
        activation,
    )
    assert used
    exact = F.linear(x.double(), weight.detach().cpu().double())
    if biased:
        exact += bias.detach().cpu().double()
    if other is not None:
        exact += other
    assert_close(found.cpu().double(), activation(exact), rtol=0, atol=TOLERANCE)


@with_panels
def test_gelu_has_the_errors_of_pytorchs() -> None:
    """Of 12 standard deviations; relative to what GELU multiplies."""
    x = torch.linspace(-12, 12, 12_000).view(-1, 1)
    found, used = values(x, *ones(), None, Activation("gelu"))
    assert used
    exact = F.gelu(x.double())
    error = ((found[:, :1] - exact) / x.abs()).abs().max()
    errors_of_pytorch = ((F.gelu(x) - exact) / x.abs()).abs().max()
    assert error <= 1.25 * errors_of_pytorch
    last = torch.tensor([[torch.inf], [torch.nan], [-20.0], [0.0], [-0.0]])
    found, _ = values(last, *ones(), None, Activation("gelu"))
    assert found[:, 0].tolist()[2:] == [0.0, 0.0, 0.0]
    assert found[0, 0].isposinf()
    assert found[1, 0].isnan()


@with_panels
def test_nan_stays_in_a_relu() -> None:
    weight, bias = layer(32, 16)
    x = torch.randn(4, 16)
    x[2] = torch.nan
    found, used = values(x, weight, bias, None, RELU)
    assert used
    assert found.isnan().all(1).tolist() == [False, False, True, False]


@with_panels
def test_a_changed_weight_is_packed_again(device: str) -> None:
    weight, bias = layer(32, 64, device)
    x = torch.randn(4, 64)
    values(x.to(device), weight, bias)
    with torch.no_grad():
        weight.mul_(2)
        bias.add_(1)
    found, _ = values(x.to(device), weight, bias)
    exact = F.linear(x.double(), *(p.detach().cpu().double() for p in (weight, bias)))
    assert_close(found.cpu().double(), exact, rtol=0, atol=TOLERANCE)


@with_panels
def test_other_layers() -> None:
    x = torch.randn(4, 64)
    assert not values(x, *layer(PANEL + 1, 64))[1]
    assert not values(x[:1], *layer(32, 64))[1]
    assert not values(x[:, :0], *layer(32, 0))[1]
    many = torch.randn(panels.MOST_RESULTS // 64 + 1, 8)
    assert not values(many, *layer(64, 8))[1]
    assert values(many[:-1], *layer(64, 8))[1]


@with_panels
@pytest.mark.usefixtures("in_optimized_form")
def test_layers_of_a_model(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Also one that nothing follows; the other has too few columns."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 8))
    x = torch.randn(4, 64)
    exact = model.double()(x.double()).detach()
    made = xpurt.optimize(model.float().eval().to(device))
    rows = []
    by_panels = fused_linear._by_panels
    monkeypatch.setattr(
        fused_linear,
        "_by_panels",
        lambda layers, x, *rest: (rows.append(len(x)), by_panels(layers, x, *rest))[1],
    )
    with torch.no_grad():
        found, row = made(x.to(device)), made(x[:1].to(device))
    assert ("0", "fused: linear layer + packed weight") in made.report.done
    assert ("1", "fused: linear layer + packed weight") not in made.report.done
    assert rows == [4]
    assert_close(found.cpu().double(), exact, rtol=0, atol=TOLERANCE)
    assert_close(row.cpu().double(), exact[:1], rtol=0, atol=TOLERANCE)


class WeightOfOneChannel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(64, 64)
        self.weight = torch.nn.Parameter(torch.randn(64))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.first(x), self.weight)


@with_panels
@pytest.mark.usefixtures("in_optimized_form")
def test_a_weight_of_one_dimension_is_left_alone(device: str) -> None:
    model, x = WeightOfOneChannel().eval(), torch.randn(8, 64)
    exact = model.double()(x.double()).detach()
    made = xpurt.optimize(model.float().to(device))
    with torch.no_grad():
        found = made(x.to(device))
    assert ("first", "fused: linear layer + packed weight") in made.report.done
    assert_close(found.cpu().double(), exact, rtol=0, atol=10 * TOLERANCE)


@with_panels
def test_the_policy_for_kernels_on_the_queue(cpu: torch.device) -> None:
    weight, bias = layer(32, 64, "xpu")
    x = torch.randn(4, 64).to(cpu)
    assert values(x, weight, bias)[1]
    with xpurt.kernel_policy("sycl"):
        assert not values(x, weight, bias)[1]


def test_another_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "MOST_RESULTS", 0)
    assert not values(torch.randn(4, 64), *layer(32, 64))[1]


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512",
    reason="other products are left to PyTorch without AVX-512",
)
@pytest.mark.parametrize(("rows", "packed"), [(64, True), (63, False)])
def test_a_layer_of_many_inputs_takes_the_primitive(rows: int, packed: bool) -> None:
    weight, bias = layer(256, 1024)
    x = torch.randn(rows, 1024)
    with torch.no_grad(), Ops() as ops:
        found = fused_linear.packed_linear(x, weight, bias)
    assert ("_linear_pointwise" in ops.names) == packed
    exact = F.linear(x.double(), weight.double(), bias.double())
    assert_close(found.double(), exact, rtol=0, atol=TOLERANCE)


X, WEIGHT = torch.zeros(2, 8), torch.zeros(2, 8, PANEL)
REFUSED: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "type": ((X.double(), WEIGHT, None, None), TypeError, "activations in float32"),
    "dimensions": ((X[0, 0], WEIGHT, None, None), ValueError, "a weight in panels"),
    "panel": ((X, WEIGHT[..., 1:], None, None), ValueError, "a weight of shape"),
    "inputs": ((X[:, 1:], WEIGHT, None, None), ValueError, r"of shape \[2, 7, "),
    "bias": ((X, WEIGHT, torch.zeros(3), None), ValueError, "a bias of shape"),
    "other": ((X, WEIGHT, None, X), ValueError, "what is added of shape"),
}


@with_panels
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    args, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        torch.ops.xpurt.panel_linear(*args, 2 * PANEL, "none")


@with_panels
def test_an_unknown_activation() -> None:
    with pytest.raises(ValueError, match="none, relu and gelu; found silu"):
        torch.ops.xpurt.panel_linear(X, WEIGHT, None, None, 2 * PANEL, "silu")


@with_panels
def test_empty_operands() -> None:
    op = torch.ops.xpurt.panel_linear
    columns = 2 * PANEL
    assert op(X[:0], WEIGHT, None, None, columns, "relu").shape == (0, columns)
    bias = torch.randn(columns)
    found = op(X[:, :0], WEIGHT[:, :0], bias, None, columns, "none")
    assert found.equal(bias.expand(2, -1))
    assert op(X, WEIGHT[:0], None, None, 0, "none").shape == (2, 0)
    assert pack_panels(torch.randn(PANEL + 1, 3)).shape == (2, 3, PANEL)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512", reason="AVX2 runs above"
)
def test_values_with_avx2() -> None:
    run(
        """
        import torch, xpurt
        from xpurt.functional.panels import pack_panels, takes_panels

        torch.ones(1, device="xpu")
        x, weight, bias = torch.randn(77, 600), torch.randn(48, 600) / 25, torch.randn(48)
        assert takes_panels(x, weight)
        found = torch.ops.xpurt.panel_linear(
            x, pack_panels(weight), bias, None, 48, "relu")
        exact = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
        assert (found - exact.relu()).abs().max() < 1e-5
        """,
        fresh=True,
        ATEN_CPU_CAPABILITY="avx2",
    ).check_returncode()
