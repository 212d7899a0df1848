"""Models train on a device whose memory the host cannot read, with kernels alone."""

import warnings

import pytest
import torch

import xpurt
from kernels.model_zoo import CASES, losses
from xpurt import _C


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
