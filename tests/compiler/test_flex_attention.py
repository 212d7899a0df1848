"""torch.compile of flex_attention on xpu, compared with what PyTorch computes op by op on
the CPU in float64: errors are at most twice those of the same in the type of the call."""

from typing import Any

import pytest
import torch
from compiler import flex_cases
from compiler.flex_cases import CASES, few_first
from torch import Tensor
from torch.nn.attention import flex_attention as flex
from torch.testing import assert_close

import xpurt
from xpurt.compiler.flex import blocks

pytestmark = [
    pytest.mark.filterwarnings("error:torch.compile runs"),
    pytest.mark.filterwarnings("ignore:flex_attention called without"),
]


def _compiled(function: Any) -> Any:
    return torch.compile(function, fullgraph=True)


def _eager(function: Any) -> Any:
    return function


def _check(xpu: torch.device, name: str, *, grad: bool) -> None:
    torch.manual_seed(0)
    case = CASES[name]
    given = flex_cases.operands(case)
    exact = flex_cases.run(case, [each.double() for each in given], _eager, grad=grad)
    plain = flex_cases.run(case, given, _eager, grad=grad)
    on_xpu = [each.to(xpu) for each in given]
    found = flex_cases.run(case, on_xpu, _compiled, grad=grad)
    for each, of_plain, of_exact in zip(found, plain, exact, strict=True):
        assert each.dtype == of_plain.dtype
        assert each.stride() == of_plain.stride()
        _check_error(each, of_plain, of_exact)


def _check_error(found: Tensor, plain: Tensor, exact: Tensor) -> None:
    few = 8 * torch.finfo(found.dtype).eps * exact.abs().max()
    allowed = 2 * (plain - exact).abs().max() + few
    assert (found - exact).abs().max() <= allowed


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_each_case(xpu: torch.device, name: str) -> None:
    _check(xpu, name, grad=True)


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_without_gradients(xpu: torch.device, name: str) -> None:
    _check(xpu, name, grad=False)


@pytest.mark.mappings("GPU", "AUTO")
@pytest.mark.parametrize("name", few_first())
def test_beside_and_on_gpus(xpu: torch.device, name: str) -> None:
    _check(xpu, name, grad=True)


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_kernels(xpu: torch.device, name: str) -> None:
    with xpurt.kernel_policy("sycl"):
        _check(xpu, name, grad=True)


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("name", few_first())
def test_blocks_of_queries(
    xpu: torch.device, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_SCORES", 2 * 4 * flex_cases.KEYS * 32)
    _check(xpu, name, grad=True)


def test_rows_at_a_time() -> None:
    assert blocks.rows_at_a_time(blocks._SCORES // 100, 100) is None
    assert blocks.rows_at_a_time(blocks._SCORES // 100, 101) == 96
    assert blocks.rows_at_a_time(blocks._SCORES, 101) == 16


def test_blocks_that_are_not_listed_are_masked(xpu: torch.device) -> None:
    """As by PyTorch's fused kernels; eager mode asks the function alone."""
    query, key, value = (torch.randn(1, 1, 32, 16).to(xpu) for _ in range(3))
    count = torch.ones(1, 1, 2, dtype=torch.int32, device=xpu)
    listed = torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32, device=xpu)
    mask = flex.BlockMask.from_kv_blocks(count, listed, BLOCK_SIZE=16)
    call = torch.compile(flex.flex_attention, fullgraph=True)
    shown = torch.block_diag(torch.ones(16, 16), torch.ones(16, 16)).bool().to(xpu)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=shown
    )
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            found = call(query.requires_grad_(grad), key, value, block_mask=mask)
        assert_close(found, expected)


def test_sizes_that_change(xpu: torch.device) -> None:
    call = torch.compile(flex.flex_attention, dynamic=True, fullgraph=True)
    for length in (32, 48):
        given = [torch.randn(1, 2, length, 16).to(xpu) for _ in range(3)]
        for each in given:
            each.requires_grad_()
        found, expected = call(*given), flex.flex_attention(*given)
        assert_close(found, expected)
        assert_close(
            torch.autograd.grad(found.sum(), given),
            torch.autograd.grad(expected.sum(), given),
        )


def test_memory_of_long_sequences(xpu: torch.device) -> None:
    """Twice as many tokens take twice the memory, not four times."""
    call = torch.compile(flex.flex_attention, fullgraph=True)
    peaks = []
    for length in (4096, 8192):
        given = [torch.randn(1, 1, length, 16).to(xpu) for _ in range(3)]
        for each in given:
            each.requires_grad_()
        torch.xpu.synchronize()
        torch.xpu.reset_peak_memory_stats()
        before = torch.xpu.memory_allocated()
        torch.autograd.grad(call(*given).sum(), given)
        torch.xpu.synchronize()
        peaks.append(torch.xpu.max_memory_allocated() - before)
    assert peaks[1] < 2.2 * peaks[0]
