"""Tests of the choice of tiers have a table of costs of their own, and learn nothing
unless they switch it on."""

from collections.abc import Iterator

import pytest
from policy_costs import SetCosts

import xpurt
from xpurt import _C, mapping


@pytest.fixture
def on_cpu() -> Iterator[None]:
    """xpu:0 is the CPU device, and the policy is "auto"."""
    with xpurt.xpu_mapping("CPU"), xpurt.kernel_policy("auto"):
        yield
        mapping.install_costs(mapping.current_placement())


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
    _C.forget_tiers()
    yield
    _C.set_learning(False)
    _C.set_learning_bias(0, 0)
    _C.forget_tiers()
