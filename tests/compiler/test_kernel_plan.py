"""Plans for graphs on several devices: no device, and no compiler."""

import pytest

from xpurt.compiler.kernel_plan import Costs, Task, devices_of

CPU: Costs = (10, 20_000, 100_000, 5, 5_000)
GPU: Costs = (15, 20_000, 100_000, 15, 8_000)
FAST: Costs = (15, 400_000, 5_000_000, 15, 8_000)
LONG = 1e9  # flops: 10 ms on the CPU
SMALL = 1e6  # bytes: 0.1 ms of copies


def branches(*, between: float = SMALL, given: float = 0) -> list[Task]:
    """A task, two that read its result, and one that reads theirs."""
    return [
        Task("first", SMALL, SMALL, given),
        Task("left", LONG, SMALL, 0, ((0, between),)),
        Task("right", LONG, SMALL, 0, ((0, between),)),
        Task("last", SMALL, SMALL, 0, ((1, between), (2, between))),
    ]


def test_two_branches_take_two_devices() -> None:
    found = devices_of(branches(), [CPU, GPU], home=0)
    assert found["left"] != found["right"]
    assert found.keys() == {"first", "left", "right", "last"}


@pytest.mark.parametrize(
    ("tasks", "costs"),
    [
        (branches(between=1e9), [CPU, GPU]),  # the copies take longer than the work
        (branches(), [CPU, FAST]),  # the fast device alone
        (branches()[:2], [CPU, GPU]),  # a chain
        (branches(), [CPU]),
        ([], [CPU, GPU]),
    ],
    ids=["copies", "one is fast", "chain", "one device", "no task"],
)
def test_no_plan_without_a_gain(tasks: list[Task], costs: list[Costs]) -> None:
    assert devices_of(tasks, costs, home=0) == {}


def test_inputs_that_a_call_brings_are_at_home() -> None:
    """Copying a large input takes longer than a task that reads it."""
    tasks = [Task("left", LONG, SMALL, given_bytes=1e9), Task("right", LONG, SMALL)]
    assert devices_of(tasks, [CPU, GPU], home=0) == {"left": 0, "right": 1}
    assert devices_of(tasks, [GPU, CPU], home=1) == {"left": 1, "right": 0}
