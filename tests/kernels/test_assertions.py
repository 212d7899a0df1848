"""Assertions on tensors: a kernel checks them, and no host waits."""

import pytest
import torch

import xpurt


def tiers(op: str) -> set[str]:
    return {row.tier for row in xpurt.op_report() if row.op.startswith(op)}


@pytest.mark.parametrize(
    "value", [1, True, -0.5, float("nan"), 2j], ids=lambda v: type(v).__name__ + str(v)
)
def test_what_holds(xpu: torch.device, value: complex) -> None:
    with xpurt.kernel_policy("sycl"):
        torch._assert_async(torch.tensor([[value]], device=xpu))
        torch.xpu.synchronize()


@pytest.mark.parametrize("value", [0, False, 0.0, 0j], ids=lambda v: type(v).__name__)
def test_the_next_wait_raises(xpu: torch.device, value: complex) -> None:
    zero = torch.tensor(value, device=xpu)
    xpurt.op_report(reset=True)
    with xpurt.kernel_policy("sycl"):
        torch._assert_async(zero)
        torch._assert_async(zero == 0)  # the host has gone on
        with pytest.raises(RuntimeError, match="single nonzero value, but got zero"):
            torch.xpu.synchronize()
        for message in ("first message", "second message"):
            torch._assert_async(zero, message)
            with pytest.raises(RuntimeError, match=message):
                torch.xpu.synchronize()
        token = torch.ones(2, device=xpu)
        after = torch.ops.aten._functional_assert_async.msg(zero == 0, "no", token)
        assert after.tolist() == [1, 1]
    torch.xpu.synchronize()  # said once
    assert "copy" not in tiers("aten::")
    assert tiers("aten::_assert_async") == {"sycl"}


def test_other_counts_raise_at_once(xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="Tensor with more than one value"):
        torch._assert_async(torch.ones(2, device=xpu))
    with pytest.raises(RuntimeError, match="Tensor with no values is ambiguous"):
        torch._assert_async(torch.ones(0, device=xpu))
