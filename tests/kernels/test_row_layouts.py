"""Custom kernels with operands and gradients that are dense, but not contiguous."""

import pytest
import torch
import torch.nn.functional as F

import xpurt
from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.rows.table import ROWS

STEPS = [row for row in ROWS if isinstance(row, CustomKernel)]

# Operands that are read by position, and are neither made contiguous nor read with
# their strides: they have one element, or are made by the rows' own functions.
BY_PLACE = {
    "total_weight",
    "rate",
    "step",
    "grad_scale",
    "found_inf",
    "inv_scale",
    "growth_tracker",
    "sums",
    "from",
}


@pytest.mark.parametrize("row", STEPS, ids=lambda row: row.aten)
def test_what_is_read_by_place_is_contiguous(row: CustomKernel) -> None:
    prepared = {*row.contiguous, *row.dense, *BY_PLACE}
    prepared |= {each.name for each in row.scratch}
    read = {name for step in row.steps for name in step.reads}
    by_place = {
        name
        for name in read - prepared
        if not name.startswith(("out", "indices")) and not row.takes_strides_of(name)
    }
    # A macro reads the strides of each of `indices`. Rows of our own ops make the
    # operands of their steps.
    assert not by_place or row.aten.startswith("xpurt::")


@pytest.mark.parametrize("row", STEPS, ids=lambda row: row.aten)
def test_what_is_written_by_place_is_contiguous(row: CustomKernel) -> None:
    if row.begins_as or row.like or row.draws:
        return
    results = row.laid_out_results
    for step in row.steps:
        for name in step.writes:
            number = name.removeprefix("out")
            if not name.startswith("out") or not (number.isdigit() or not number):
                continue
            if not row.takes_strides_of(name):
                assert results[int(number or 0)].laid_out_like


def transposed(*shape: int) -> torch.Tensor:
    return torch.randn(shape[::-1]).permute(*reversed(range(len(shape))))


@pytest.fixture(params=["auto", "sycl"])
def policy(request: pytest.FixtureRequest):
    with xpurt.kernel_policy(request.param):
        yield


@pytest.mark.usefixtures("policy")
def test_layer_norm_takes_a_permuted_gradient(xpu: torch.device) -> None:
    x, weight, sent = torch.randn(4, 6, 8), torch.randn(8), transposed(4, 6, 8)

    def gradients(device: torch.device) -> tuple[torch.Tensor, ...]:
        inputs = [each.to(device).requires_grad_() for each in (x, weight)]
        result = F.layer_norm(inputs[0], (8,), inputs[1])
        return torch.autograd.grad(result, inputs, sent.to(device))

    wanted = gradients(torch.device("cpu"))
    for ours, theirs in zip(gradients(xpu), wanted, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.usefixtures("policy")
@pytest.mark.mappings("CPU", "GPU")
def test_layer_norm_with_a_bias_alone(xpu: torch.device) -> None:
    x, bias, sent = torch.randn(4, 6, 8), torch.randn(8), torch.randn(4, 6, 8)

    def gradients(device: torch.device) -> tuple[torch.Tensor, ...]:
        inputs = [each.to(device).requires_grad_() for each in (x, bias)]
        result = F.layer_norm(inputs[0], (8,), None, inputs[1])
        return torch.autograd.grad(result, inputs, sent.to(device))

    wanted = gradients(torch.device("cpu"))
    for ours, theirs in zip(gradients(xpu), wanted, strict=True):
        torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.usefixtures("policy")
@pytest.mark.parametrize("cell", [torch.nn.LSTMCell, torch.nn.GRUCell])
def test_cells_take_permuted_states_and_gradients(xpu: torch.device, cell) -> None:
    module = cell(3, 5)
    x, state, sent = torch.randn(4, 3), transposed(4, 5), transposed(4, 5)
    states = (state, state.clone()) if cell is torch.nn.LSTMCell else (state,)

    def called(device: torch.device) -> list[torch.Tensor]:
        there = module.to(device)
        given = [each.to(device).requires_grad_() for each in states]
        result = there(x.to(device), tuple(given) if len(given) > 1 else given[0])
        results = list(result) if isinstance(result, tuple) else [result]
        leaves = [*given, *there.parameters()]
        back = torch.autograd.grad(results, leaves, [sent.to(device)] * len(results))
        return [each.detach().cpu() for each in (*results, *back)]

    wanted = called(torch.device("cpu"))
    for ours, theirs in zip(called(xpu), wanted, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("policy", ["native", "sycl"])
@pytest.mark.parametrize("op", [torch._softmax, torch._log_softmax])
def test_softmax_into_every_other_column(op, policy: str, xpu: torch.device) -> None:
    """PyTorch's kernel writes as if the result were contiguous."""
    x = torch.randn(3, 4)
    target = torch.zeros(3, 8, device=xpu)
    with xpurt.kernel_policy(policy):
        result = op(x.to(xpu), 1, False, out=target[:, ::2])
    assert result.stride() == (8, 2)
    torch.testing.assert_close(target[:, ::2].cpu(), op(x, 1, False))
    assert target[:, 1::2].eq(0).all()
