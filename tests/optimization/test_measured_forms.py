"""Which form a model runs: the faster one, found in its first calls."""

import time
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt.optimization import fusions
from xpurt.optimization.fused_linear import linear
from xpurt.optimization.measured_forms import MeasuredForms


def busy(seconds: float) -> None:
    """Takes that much processor time."""
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


class Model(nn.Module):
    """As written it takes `seconds` more."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.layer, self.seconds = nn.Linear(8, 8), seconds

    def forward(self, x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            busy(self.seconds)
        return F.relu(self.layer(x))


@pytest.mark.parametrize("optimized_takes_longer", [False, True])
def test_the_faster_form_stays(
    optimized_takes_longer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def noted(*args: Any) -> Tensor:
        calls.append("optimized")
        busy(0.003 * optimized_takes_longer)
        return linear(*args)

    monkeypatch.setattr(fusions, "linear", noted)
    model, x = Model(0.003 * (not optimized_takes_longer)).eval(), torch.randn(4, 8)
    made: Any = xpurt.optimize(model)
    with torch.no_grad():
        expected = model(x)
        for _ in range(48):
            assert_close(made(x), expected)
        calls.clear()
        made(x)
    assert calls == ([] if optimized_takes_longer else ["optimized"])
    told = [why for _, why in made.report.left if "took" in why]
    assert bool(told) == optimized_takes_longer


def test_calls_of_other_sizes_are_measured_apart() -> None:
    forms = MeasuredForms(lambda *_: None)
    ran: list[str] = []

    def call(x: Tensor) -> None:
        forms.run(
            lambda: (ran.append("written"), busy(2e-3 * (len(x) < 9))),
            lambda: (ran.append("optimized"), busy(2e-3 * (len(x) > 9))),
            (x,),
            {},
        )

    for size in (8, 100):
        for _ in range(48):
            call(torch.zeros(size))
    ran.clear()
    for size in (8, 100, 9, 90):
        call(torch.zeros(size))
    assert ran == ["optimized", "written"] * 2


def test_results_that_have_to_repeat_are_not_measured() -> None:
    model, x = Model().eval(), torch.randn(4, 8)
    made: Any = xpurt.optimize(model)
    torch.use_deterministic_algorithms(True)
    try:
        with torch.no_grad():
            found = [made(x) for _ in range(8)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(found[0], each) for each in found)
    assert ("layer", "fused: linear layer + relu") in made.report.done


def test_times_with_a_sample() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2))
    made: Any = xpurt.optimize(model.eval(), sample_input=torch.randn(2, 4))
    (took,) = made.report.times
    assert took.name == ""
    assert took.before_ms > 0 < took.after_ms
    assert "ms per call" in str(made.report)
