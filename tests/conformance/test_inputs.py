"""Inputs on another device, and tolerances; the CPU stands in for the device."""

from types import SimpleNamespace

import torch
from torch.testing._internal.common_device_type import tol, toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo

from xpurt_tools.conformance.inputs import described, moved
from xpurt_tools.conformance.tolerance import tolerance


def test_all_that_names_the_cpu_moves(xpu: torch.device) -> None:
    generator = torch.Generator().manual_seed(5)
    tree = (torch.ones(2), {"device": "cpu", "d": torch.device("cpu"), "g": generator})
    (tensor, named) = moved(tree, xpu)
    assert tensor.device == xpu
    assert named["device"] == "xpu:0"
    assert named["d"] == xpu
    assert named["g"].device == xpu
    assert named["g"].initial_seed() == 5


def test_samples_are_shown_in_short() -> None:
    tree = (torch.ones(2, 3).t(), [torch.tensor(True)], {"dim": 1})
    assert described(tree) == "(float32[3x2 strides (1, 3)], [bool[()]], {'dim': 1})"
    assert described(torch.eye(2).to_sparse()) == "float32[2x2 sparse_coo]"
    assert len(described(list(range(1000)), longest=50)) == 50


def test_the_widest_tolerance_holds() -> None:
    wide = toleranceOverride({torch.float32: tol(atol=1e-2, rtol=0)})
    info = SimpleNamespace(
        decorators=(
            DecorateInfo(wide, "TestCommon", "test_out"),
            DecorateInfo(
                toleranceOverride({torch.float32: tol(atol=1, rtol=1)}),
                device_type="cuda",
            ),
        )
    )
    found = tolerance(info, torch.float32)
    assert (found.rtol, found.atol) == (1.3e-6, 1e-2)
    found = tolerance(info, torch.float64)
    assert (found.rtol, found.atol) == (1e-7, 1e-7)


def test_integers_are_equal_or_not() -> None:
    found = tolerance(SimpleNamespace(decorators=()), torch.int64)
    assert (found.rtol, found.atol) == (None, None)
