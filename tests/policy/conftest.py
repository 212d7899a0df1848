"""Tests of the choice of tiers have a table of costs of their own, and learn nothing
unless they switch it on."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from policy_costs import SetCosts
from policy_machine import QuietWatch

import xpurt
from xpurt import _C, config, mapping
from xpurt.calibration import measure, run
from xpurt.kernels.costs import calibration_store

FEW = tuple(
    dataclasses.replace(one, letters="f", largest=13)
    for one in measure.PROBE_OPS
    if one.cost_class in ("cheap", "reduction") and one.layout == "alike"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for calibrations of two classes of ops. The machine counts as quiet."""
    made = dataclasses.replace(config.config(), cache_folder=tmp_path / "made")
    monkeypatch.setattr(calibration_store, "config", lambda: made)
    monkeypatch.setattr(calibration_store, "_warned", set())
    monkeypatch.setattr(measure, "PROBE_OPS", FEW)
    monkeypatch.setattr(run, "Watch", QuietWatch)
    return made.cache_folder


@pytest.fixture
def on_cpu() -> Iterator[None]:
    """xpu:0 is the CPU device, and the policy is "auto"."""
    with xpurt.xpu_mapping("CPU"), xpurt.kernel_policy("auto"):
        _C.set_learning(False)
        yield
        mapping.install_costs(mapping.current_placement())
        _C.set_learning(config.config().learn)


@pytest.fixture
def set_costs(on_cpu: None) -> SetCosts:
    """Sets microseconds (native, by a kernel) of a class, whatever the size."""

    def set_costs(**classes: tuple[float, float]) -> None:
        _C.set_cost_curves(
            0,
            0,
            [
                (name, "f", "alike", [(1.0, *us), (2.0**40, *us)])
                for name, us in classes.items()
            ],
        )

    return set_costs


@pytest.fixture
def learning(on_cpu: None) -> Iterator[None]:
    _C.set_learning(True)
    _C.testing.forget_statistics()
    yield
    _C.set_learning(False)
    _C.testing.set_learning_bias(0, 0)
    _C.testing.forget_statistics()
