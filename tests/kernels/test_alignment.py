"""The loss of connectionist temporal classification, and unpooling."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import xpurt
from kernels.kernel_forced import forced, tiers_of
from xpurt import _C

LABELS = [
    (torch.tensor([[1, 1, 2, 3, 0, 4]] * 3), [2, 4, 0]),
    (torch.tensor([1, 0, 2, 2, 3, 1]), [2, 4, 0]),
    (torch.tensor([[1, 2, 1, 1, 2, 2]] * 3, dtype=torch.int32), [2, 4, 6]),
    (torch.empty(3, 0, dtype=torch.int64), [0, 0, 0]),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("labels", range(len(LABELS)))
def test_losses_and_gradients(
    labels: int, dtype: torch.dtype, xpu: torch.device
) -> None:
    targets, lengths = LABELS[labels]
    given = torch.randn(9, 3, 5, dtype=dtype)
    _C.reset_op_report()
    for times in ([9, 8, 6], [9, 0, 0], [1, 3, 9]):
        for infinity in (False, True):
            how: dict[str, Any] = {"zero_infinity": infinity, "reduction": "none"}
            ours = given.to(xpu).requires_grad_()
            theirs = given.clone().requires_grad_()
            with xpurt.kernel_policy("sycl"):
                loss = F.ctc_loss(
                    ours.log_softmax(2), targets.to(xpu), times, lengths, blank=4, **how
                )
                loss.sum().backward()
            expected = F.ctc_loss(
                theirs.log_softmax(2), targets, times, lengths, blank=4, **how
            )
            expected.sum().backward()
            torch.testing.assert_close(loss.detach().cpu(), expected.detach())
            assert ours.grad is not None
            torch.testing.assert_close(
                ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-5, equal_nan=True
            )
    assert tiers_of("aten::_ctc_loss") == {"sycl"}
    assert tiers_of("aten::_ctc_loss_backward") == {"sycl"}


def test_more_states_than_lanes(xpu: torch.device) -> None:
    given = torch.randn(150, 2, 7).log_softmax(2)
    targets = torch.randint(1, 7, (2, 60))
    strided = torch.stack([targets, -targets], 2).to(xpu)[..., 0]
    with forced("aten::_ctc_loss"):
        found = F.ctc_loss(given.to(xpu), strided.to(xpu), [150, 140], [60, 43])
    expected = F.ctc_loss(given, targets, [150, 140], [60, 43])
    torch.testing.assert_close(found.cpu(), expected)


def test_what_does_not_fit(xpu: torch.device) -> None:
    given = torch.randn(9, 3, 5).to(xpu)
    targets = torch.ones(3, 6, dtype=torch.int64).to(xpu)
    with xpurt.kernel_policy("sycl"):
        with pytest.raises(RuntimeError, match="input_lengths to have value at most 9"):
            F.ctc_loss(given, targets, [10, 1, 1], [1, 1, 1])
        with pytest.raises(RuntimeError, match="at least 7 at dimension 1"):
            F.ctc_loss(given, targets, [9, 1, 1], [7, 1, 1])
        with pytest.raises(RuntimeError, match="blank must be in label range"):
            F.ctc_loss(given, targets, [9, 1, 1], [1, 1, 1], blank=5)
        torch.xpu.synchronize()
        with pytest.raises(RuntimeError, match="ctc_loss: Expected labels"):
            F.ctc_loss(given, targets + 4, [9, 9, 9], [1, 1, 1]).item()


@pytest.mark.parametrize("axes", [2, 3])
def test_unpooling(axes: int, xpu: torch.device) -> None:
    pool, unpool = getattr(F, f"max_pool{axes}d"), getattr(F, f"max_unpool{axes}d")
    given = torch.randn(2, 3, *[6] * axes)
    last = [torch.channels_last, torch.channels_last_3d][axes - 2]
    for some in (given, given[0], given.to(memory_format=last)):
        values, places = pool(some, 2, return_indices=True)
        ours = values.to(xpu).requires_grad_()
        theirs = values.clone().requires_grad_()
        with forced(f"aten::max_unpool{axes}d"):
            found = unpool(ours, places.to(xpu), 2)
        expected = unpool(theirs, places, 2)
        assert torch.equal(found.cpu(), expected)
        assert found.stride() == expected.stride()
        found.square().sum().backward()
        expected.square().sum().backward()
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad.cpu(), theirs.grad)


@pytest.mark.parametrize("wrong", [99, -1, 2**40])
def test_unpooling_to_places_that_are_not(wrong: int, xpu: torch.device) -> None:
    x, places = torch.rand(1, 1, 2, 2), torch.tensor([[[[0, 3], [9, wrong]]]])
    torch.xpu.synchronize()
    with xpurt.kernel_policy("sycl"):
        F.max_unpool2d(x.to(xpu), places.to(xpu), 2)
        with pytest.raises(RuntimeError, match="Found an invalid max index"):
            torch.xpu.synchronize()
