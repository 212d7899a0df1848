"""Random programs of ops, views and in-place writes give what they give on the CPU."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from robustness.random_ops import OPS, Step, run

pytestmark = [
    pytest.mark.usefixtures("policy"),
    pytest.mark.filterwarnings("ignore:An output with one or more elements"),
    pytest.mark.filterwarnings("ignore:Use of masked_fill_ on expanded tensors"),
]

STEPS = st.lists(
    st.builds(
        Step,
        op=st.sampled_from(sorted(OPS)),
        first=st.integers(0, 9),
        second=st.integers(0, 9),
    ),
    min_size=12,
    max_size=40,
)
CHECKS = st.sets(st.integers(0, 40), max_size=4)
FEW = settings(
    max_examples=100,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
MANY = settings(FEW, max_examples=3000, derandomize=False)


@FEW
@given(steps=STEPS, checks=CHECKS)
def test_a_few(steps: list[Step], checks: set[int]) -> None:
    run(steps, checks)


@pytest.mark.slow
@MANY
@given(steps=STEPS, checks=CHECKS)
def test_many(steps: list[Step], checks: set[int]) -> None:
    run(steps, checks)
