"""Models train on a device whose memory the host cannot read, with kernels alone."""

import copy
import warnings

import pytest
import torch

import xpurt
from kernels.model_zoo import CASES, Case
from xpurt import _C

STEPS = 3


def losses(case: Case, device: torch.device | str) -> list[float]:
    """The losses of the first steps of training."""
    model = copy.deepcopy(case.model).to(device).train()
    batch = [each.to(device) for each in case.batch]
    optimizer = case.optimizer(model.parameters())
    seen = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = case.loss(model, *batch)
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    return [each.item() for each in seen]


@pytest.mark.mappings("GPU")
@pytest.mark.parametrize("name", CASES)
def test_training_copies_nothing_to_the_host(name: str, xpu: torch.device) -> None:
    """Three steps give the CPU's losses, and every op has a kernel on the device."""
    torch.manual_seed(0)
    case = CASES[name]()
    expected = losses(case, "cpu")
    _C.reset_op_report()
    with xpurt.kernel_policy("sycl"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report has them all
        actual = losses(case, xpu)
    copied = sorted({row.op for row in xpurt.op_report() if row.tier == "copy"})
    assert not copied
    assert actual == pytest.approx(expected, rel=1e-4)
