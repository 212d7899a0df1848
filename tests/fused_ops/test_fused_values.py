"""Values and gradients of fused ops, against compositions of PyTorch's ops."""

from typing import Any

import pytest
import torch
from torch import Tensor

from fused_ops.fused_cases import CASES, Case, on, transposed
from xpurt import _C
from xpurt.optimization.comparison import difference_of

NEAR = {torch.float64: 1e-11, torch.float32: 2e-5, torch.bfloat16: 3e-2}


def results_of(made: Any) -> list[Tensor]:
    return list(made) if isinstance(made, tuple) else [made]


def gradients(
    made: Any, arguments: list[Any], seed: int = 1, create_graph: bool = False
) -> list[Tensor]:
    """Those of every result with random weights, for all arguments that have some."""
    generator = torch.Generator().manual_seed(seed)
    weighted = [
        (each, torch.randn(each.shape, generator=generator).to(each.device, each.dtype))
        for each in results_of(made)
    ]
    wanted = [a for a in arguments if isinstance(a, Tensor) and a.requires_grad]
    if not wanted:
        return []
    counted = [pair for pair in weighted if pair[0].requires_grad]
    results, weights = [each for each, _ in counted], [weight for _, weight in counted]
    return list(
        torch.autograd.grad(results, wanted, weights, create_graph=create_graph)
    )


def bounded(found: list[Tensor], plain: list[Tensor], exact: list[Tensor]) -> None:
    """The error is at most twice that of the composition in the same type, and some units
    in the last place more."""
    for number, (one, other, third) in enumerate(zip(found, plain, exact, strict=True)):
        here = [each.detach().cpu() for each in (other, one, third)]
        here[0] = here[0].to(here[1].dtype)
        assert difference_of(*here) is None, f"tensor {number}"


def near(actual: list[Tensor], expected: list[Tensor], bound: float) -> None:
    for number, (found, right) in enumerate(zip(actual, expected, strict=True)):
        assert found.shape == right.shape
        scale = float(right.detach().double().abs().max()) if right.numel() else 1
        torch.testing.assert_close(
            found.detach().cpu().double(),
            right.detach().cpu().double(),
            rtol=bound,
            atol=bound * max(scale, 1),
            msg=lambda text, number=number: f"tensor {number}: {text}",
        )


@pytest.mark.parametrize("dtype", NEAR, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients(
    case: Case, dtype: torch.dtype, device: str, xpu: torch.device
) -> None:
    given = case.made(dtype)
    exact = [
        each.detach().double().requires_grad_(each.requires_grad)
        if isinstance(each, Tensor) and each.is_floating_point()
        else each
        for each in given
    ]
    expected = case.plain(*exact)
    arguments = on(device, given)
    made = case.fused(*arguments)
    for result in results_of(made):
        assert result.device.type == device
        assert result.dtype == dtype or "cross_entropy" in case.name
    if dtype == torch.float64:  # as exact as the reference
        near(results_of(made), results_of(expected), NEAR[dtype])
        near(gradients(made, arguments), gradients(expected, exact), 4 * NEAR[dtype])
        return
    plain = case.plain(*given)
    bounded(results_of(made), results_of(plain), results_of(expected))
    bounded(
        gradients(made, arguments),
        gradients(plain, given),
        gradients(expected, exact),
    )


@pytest.mark.on_cpu
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_that_have_gradients(
    case: Case, device: str, xpu: torch.device
) -> None:
    given = case.made(torch.float64)
    expected = gradients(case.plain(*given), given)
    arguments = on(device, given)
    found = gradients(case.fused(*arguments), arguments, create_graph=True)
    near(found, expected, 4 * NEAR[torch.float64])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_is_copied_to_the_host(case: Case, xpu: torch.device) -> None:
    arguments = on("xpu", case.made(torch.float32))
    torch.xpu.synchronize()
    _C.reset_op_report()
    gradients(case.fused(*arguments), arguments)
    torch.xpu.synchronize()
    copied = [row[0] for row in _C.op_report() if row[1] == "copy"]
    assert copied == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_operands_in_other_strides(
    case: Case, dtype: torch.dtype, device: str, xpu: torch.device
) -> None:
    def strided(each: Any) -> Any:
        if not isinstance(each, Tensor):
            return each
        wide = each.detach().to(device).repeat_interleave(2, -1)
        return wide[..., ::2].requires_grad_(each.requires_grad)

    given = case.made(dtype)
    dense, apart = on(device, given), [strided(each) for each in given]
    made, same = case.fused(*apart), case.fused(*dense)
    near(results_of(made), results_of(same), NEAR[dtype])
    near(gradients(made, apart), gradients(same, dense), 4 * NEAR[dtype])


@pytest.mark.on_cpu
@pytest.mark.parametrize("case", CASES, ids=str)
def test_transposed_operands(case: Case, device: str, xpu: torch.device) -> None:
    """Dense, in another order of the dimensions."""
    dense = on(device, case.made(torch.float32))
    apart = [transposed(each) for each in dense]
    made, same = case.fused(*apart), case.fused(*dense)
    near(results_of(made), results_of(same), NEAR[torch.float32])
    near(gradients(made, apart), gradients(same, dense), 4 * NEAR[torch.float32])
