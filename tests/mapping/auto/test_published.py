"""Examples from the papers, to the digit."""

import pytest
from published import predict, ten_tasks

from xpurt.mapping import plan


@pytest.mark.parametrize(
    ("policy", "makespan"),
    [
        ("heft", 80),
        ("cpop", 86),
        # The least there is; found by the search, not printed in the paper.
        ("exact", 73),
    ],
)
def test_the_ten_tasks_of_2002(policy: str, makespan: float) -> None:
    assert plan(ten_tasks(), policy).makespan == makespan


def test_heft_places_the_ten_tasks_as_printed() -> None:
    schedule = plan(ten_tasks())
    # Figure 4 (a); processors count from 1 there.
    assert schedule.placement.tolist() == [2, 0, 2, 1, 2, 1, 2, 0, 1, 1]
    assert schedule.start.tolist() == [0, 27, 9, 18, 28, 26, 38, 57, 56, 73]
    assert schedule.finish.tolist() == [9, 40, 28, 26, 38, 42, 49, 62, 68, 80]


@pytest.mark.parametrize(("policy", "makespan"), [("peft", 122), ("heft", 133)])
def test_the_ten_tasks_of_2014(policy: str, makespan: float) -> None:
    assert plan(predict(), policy).makespan == makespan
