"""Attention of compiled host code runs by the op of xpu."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch._inductor.utils import run_and_get_code
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.mapping import current_placement

pytestmark = pytest.mark.mappings("CPU")

ATEN = "aten::_scaled_dot_product_flash_attention_for_cpu"


@pytest.fixture(autouse=True)
def native(xpu: torch.device) -> Iterator[None]:
    index = xpu.index or 0
    if not _C.host_reads(index) or len(current_placement().ordinals[index]) > 1:
        pytest.skip("there is no host code here, or its ops stay on the host")
    with xpurt.kernel_policy("auto"):
        yield


def calls_on_xpu() -> int:
    return sum(calls for name, _, _, calls, *_ in _C.op_report() if name == ATEN)


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
) -> Tensor:
    y = F.scaled_dot_product_attention(
        q * 2, k, v, attn_mask=mask, is_causal=causal, scale=0.3
    )
    return y.transpose(1, 2).flatten(2) + 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("form", ["plain", "causal", "mask", "boolean mask"])
def test_results(xpu: torch.device, dtype: torch.dtype, form: str) -> None:
    if dtype == torch.bfloat16 and form != "causal":
        pytest.skip("one form in bfloat16 suffices")
    qkv = torch.randn(2, 10, 3, 4, 16, dtype=dtype)
    mask = torch.randn(10, 10) if "mask" in form else None
    if form == "boolean mask" and mask is not None:
        mask = mask > -1
    expected = attend(*qkv.float().permute(2, 0, 3, 1, 4), mask, form == "causal")
    inputs = qkv.to(xpu).permute(2, 0, 3, 1, 4)
    given = None if mask is None else mask.to(xpu)
    torch._dynamo.reset()
    compiled = torch.compile(attend, fullgraph=True)
    _, codes = run_and_get_code(compiled, *inputs, given, form == "causal")
    assert "torch.ops.xpurt.host_attention" in "\n".join(codes)
    before = calls_on_xpu()
    found = compiled(*inputs, given, form == "causal")
    assert calls_on_xpu() > before
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    assert_close(found.cpu().float(), expected, rtol=tolerance, atol=tolerance)
    assert found.device == inputs.device


def test_gradients_and_results_that_are_attention_alone(xpu: torch.device) -> None:
    """The result of the op is that of the graph; the logarithms of sums are saved."""
    start = torch.randn(3, 2, 4, 8, 16)
    expected = start.clone().requires_grad_()
    F.scaled_dot_product_attention(*expected).square().sum().backward()
    torch._dynamo.reset()
    compiled = torch.compile(F.scaled_dot_product_attention, fullgraph=True)
    for _ in range(2):
        found = start.to(xpu).requires_grad_()
        result = compiled(*found)
        assert result.device == found.device
        result.square().sum().backward()
        assert_close(found.grad.cpu(), expected.grad, rtol=1e-5, atol=1e-5)


def test_the_policy_native_keeps_the_op_of_the_cpu(xpu: torch.device) -> None:
    inputs = torch.randn(3, 2, 4, 8, 16).to(xpu)
    torch._dynamo.reset()
    with xpurt.kernel_policy("native"):
        compiled = torch.compile(attend, fullgraph=True)
        _, codes = run_and_get_code(compiled, *inputs, None, True)
    assert "host_attention" not in "\n".join(codes)
