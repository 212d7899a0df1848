"""PyTorch prepares the arguments of group norm by the device type, and not for xpu."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import xpurt
from xpurt.testing import outcome
from xpurt_tools.conformance.layouts import channels_last, expanded, permuted, with_gaps

Layout = Callable[[torch.Tensor], torch.Tensor]


def as_it_is(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


INPUTS = (as_it_is, channels_last, permuted)
GRADIENTS = (as_it_is, channels_last, permuted, with_gaps, expanded)


def normalized(
    device: torch.device, of_input: Layout, of_gradient: Layout
) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(0)
    shape = (2, 8, 6, 5)
    x = of_input(torch.randn(shape, generator=draw)).to(device).requires_grad_()
    weight, bias = (torch.randn(8, generator=draw).to(device) for _ in range(2))
    parameters = [weight.requires_grad_(), bias.requires_grad_()]
    result = F.group_norm(x, 4, *parameters)
    sent = of_gradient(torch.randn(shape, generator=draw)).to(device)
    gradients = torch.autograd.grad(result, [x, *parameters], sent)
    return [result.detach(), *gradients]


@pytest.mark.parametrize("policy", ["native", "auto", "sycl"])
@pytest.mark.parametrize("of_input", INPUTS)
@pytest.mark.parametrize("of_gradient", GRADIENTS)
def test_the_gradient_may_have_any_layout(
    xpu: torch.device, policy: str, of_input: Layout, of_gradient: Layout
) -> None:
    with xpurt.kernel_policy(policy):
        found = normalized(xpu, of_input, of_gradient)
    wanted = normalized(torch.device("cpu"), of_input, of_gradient)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)
        assert ours.stride() == theirs.stride()


def test_the_gradient_of_a_sum_is_right(xpu: torch.device) -> None:
    x = torch.randn(2, 8, 6, 6).to(xpu).requires_grad_()
    F.group_norm(x, 4).sum().backward()
    assert x.grad is not None
    assert x.grad.abs().max().item() < 1e-5


@pytest.mark.parametrize(
    ("groups", "weight"), [(3, None), (0, None), (4, torch.ones(7))], ids=str
)
def test_what_the_cpu_refuses_is_refused(
    xpu: torch.device, groups: int, weight: torch.Tensor | None
) -> None:
    x = torch.randn(2, 8, 6, 6).contiguous(memory_format=torch.channels_last)
    for device in (torch.device("cpu"), xpu):
        given = weight if weight is None else weight.to(device)
        with pytest.raises((RuntimeError, ZeroDivisionError)):
            F.group_norm(x.to(device), groups, given)


def test_weights_may_be_expanded(xpu: torch.device) -> None:
    x = torch.randn(2, 6, 3)
    weight, bias = torch.randn(2, 1).expand(2, 6)
    given = (2, 6, 3, 2, 0.5)
    found = torch.native_group_norm(x.to(xpu), weight.to(xpu), bias.to(xpu), *given)
    wanted = torch.native_group_norm(x, weight.contiguous(), bias.contiguous(), *given)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)


COUNTS = [
    *((-1, 4, 9), (-2, 4, 9), (-2, 4, -9), (2, -4, -9), (0, 4, 9), (2, 4, 0)),
    *((1, 4, 9), (4, 2, 9), (2, 2, 18), (1, 8, 9), (6, 4, 3)),
]


@pytest.mark.parametrize("policy", ["native", "sycl"])
@pytest.mark.parametrize("has_weight", [True, False])
@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_counts_that_are_not_the_sizes_of_the_input(
    xpu: torch.device, policy: str, has_weight: bool, counts: tuple[int, int, int]
) -> None:
    x, weight = torch.randn(2, 4, 3, 3), torch.rand(4)

    def normalized(device: torch.device) -> list[torch.Tensor]:
        of_channels = weight.to(device) if has_weight else None
        args = (x.to(device), of_channels, of_channels, *counts, 2, 1e-5)
        return [each.cpu() for each in torch.native_group_norm(*args)]

    with xpurt.kernel_policy(policy):
        found, error = outcome(normalized, xpu)
    wanted, expected = outcome(normalized, torch.device("cpu"))
    assert (type(error), str(error)) == (type(expected), str(expected))
    if min(counts) > 0 and math.prod(counts) == x.numel():
        torch.testing.assert_close(found, wanted)
    elif wanted is not None:  # elements that nothing has written
        assert [each.shape for each in found] == [each.shape for each in wanted]
