"""Linear layers of few rows in bfloat16: the values of float64, and which calls they are
for."""

import math
from typing import Any

import pytest
import torch
from ops_that_run import Ops
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.functional import panels
from xpurt.optimization import fused_linear

pytestmark = pytest.mark.skipif(
    not panels._multiplies_rows(),
    reason="rows are multiplied by AVX-512 with bfloat16",
)


def parameters(columns: int, inner: int, dtype: torch.dtype, device: str) -> list[Any]:
    made = torch.randn(columns, inner) + 0.3, torch.randn(columns)
    return [nn.Parameter(each.to(device, dtype)) for each in made]


def run(x: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, bool]:
    with torch.no_grad(), Ops() as ops:
        y = fused_linear.linear(x, weight, bias)
    return y, "row_linear" in ops.names


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("columns", "inner"), [(1, 1), (2, 31), (7, 32), (64, 33), (333, 2048), (40, 4100)]
)
def test_values(device: str, columns: int, inner: int, rows: int, biased: bool) -> None:
    weight, bias = parameters(columns, inner, torch.bfloat16, device)
    x = (torch.randn(rows, 1, inner) + 0.5).bfloat16()
    given = x.to(device), weight, bias if biased else None
    with torch.no_grad():
        found = torch.ops.xpurt.row_linear(*given)
    assert found.shape == (rows, 1, columns)
    wide, of_weight = x.double(), weight.detach().cpu().double()
    wanted = wide @ of_weight.T + (bias.detach().cpu().double() if biased else 0)
    # The sums are those of float32, and rounded once.
    bound = 2.0**-22 * math.sqrt(inner) * (wide.abs() @ of_weight.abs().T)
    bound = bound + 2.0**-8 * wanted.abs()
    assert ((found.cpu().double() - wanted).abs() <= bound).all()


def test_parameters_in_float32_under_autocast() -> None:
    weight, bias = parameters(9, 64, torch.float32, "cpu")
    x = torch.randn(2, 64)
    with torch.autocast("cpu", torch.bfloat16):
        found, used = run(x, weight, bias)
    assert used
    narrow, of_weight = (each.detach().bfloat16().double() for each in (x, weight))
    wanted = narrow @ of_weight.T + bias.detach().bfloat16().double()
    torch.testing.assert_close(found.double(), wanted, rtol=2**-8, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2])
def test_calls_by_rows(device: str, rows: int) -> None:
    weight, bias = parameters(9, 64, torch.bfloat16, device)
    x = torch.randn(rows, 64).bfloat16().to(device)
    found, used = run(x, weight, bias)
    assert used
    wanted = F.linear(x, weight, bias)
    torch.testing.assert_close(found, wanted.detach(), rtol=2**-7, atol=1e-4)


@pytest.mark.parametrize(
    ("rows", "dtype"), [(3, torch.bfloat16), (1, torch.float32), (2, torch.float32)]
)
def test_other_calls(rows: int, dtype: torch.dtype) -> None:
    weight, bias = parameters(9, 64, dtype, "cpu")
    assert not run(torch.randn(rows, 64, dtype=dtype), weight, bias)[1]


def test_layers_of_one_input_are_not_copied_into_one() -> None:
    layers = tuple(
        tuple(parameters(n, 64, torch.bfloat16, "cpu")) for n in (8, 4)
    )  # fmt: skip
    with torch.no_grad():
        assert fused_linear.joined_linear(torch.randn(1, 64).bfloat16(), layers) is None


def test_a_value_that_is_not_finite_spoils_its_own_row() -> None:
    weight, _ = parameters(6, 64, torch.bfloat16, "cpu")
    x = torch.randn(2, 64).bfloat16()
    x[1, 40] = math.inf
    found, _ = run(x, weight, None)
    assert found[0].isfinite().all()
    assert not found[1].isfinite().any()


def test_operands_that_do_not_fit() -> None:
    x, weight = torch.zeros(1, 8).bfloat16(), torch.zeros(4, 8).bfloat16()
    op = torch.ops.xpurt.row_linear
    with pytest.raises(ValueError, match=r"a weight \(out, in\); found shapes"):
        op(x[:, :7], weight, None)
    with pytest.raises(TypeError, match=r"wants a weight in bfloat16"):
        op(x, weight.float(), None)
    with pytest.raises(ValueError, match=r"wants a bias of shape"):
        op(x, weight, torch.zeros(5).bfloat16())
