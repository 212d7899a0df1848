"""A program that is held to one device: where its ops run, and what is said of it."""

from collections.abc import Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import xpurt
from auto.choices import Choices, calls
from auto.test_learning import auto
from xpurt import _C


@pytest.fixture
def held(choices: Choices) -> Iterator[Choices]:
    """Costs send all ops to the GPU."""
    choices.gpu()
    yield choices
    _C.testing.hold_alone(None)


def ran_on(x: Tensor) -> str:
    """The kind of the device that computes a tanh."""
    xpurt.op_report(reset=True)
    for _ in range(3):
        x.tanh()
    torch.xpu.synchronize()
    counts = {kind: calls("aten::tanh", kind) for kind in ("cpu", "gpu")}
    assert sorted(counts.values()) == [0, 3]
    return max(counts, key=lambda kind: counts[kind])


@pytest.mark.parametrize("elements", [64, 1 << 20])
def test_ops_run_on_the_device_that_is_held(held: Choices, elements: int) -> None:
    x = torch.ones(elements, device="xpu")
    assert ran_on(x) == "gpu"
    _C.testing.hold_alone(held.kinds.index("cpu"))
    assert ran_on(x) == "cpu"
    held.cpu()
    _C.testing.hold_alone(held.kinds.index("gpu"))
    assert ran_on(x) == "gpu"
    _C.testing.hold_alone(None)
    assert ran_on(x) == "cpu"


def test_a_preference_counts_more(held: Choices) -> None:
    x = torch.ones(1 << 20, device="xpu")
    _C.testing.hold_alone(held.kinds.index("cpu"))
    with xpurt.prefer("GPU"):
        assert ran_on(x) == "gpu"
    assert ran_on(x) == "cpu"


def test_nothing_is_divided(held: Choices) -> None:
    """Devices of equal costs divide a product; a program that is held does not."""
    _C.set_device_costs(0, [(10, 1e4, 1e4, 10, 1e4) for _ in held.kinds])
    a, b = torch.ones(1024, 512, device="xpu"), torch.ones(512, 512, device="xpu")

    def shards() -> int:
        before = sum(_C.testing.shards_run(0))
        F.relu(a @ b)
        torch.xpu.synchronize()
        return sum(_C.testing.shards_run(0)) - before

    assert shards() > 1
    _C.testing.hold_alone(held.kinds.index("cpu"))
    assert shards() == 0


def test_the_reason_is_told(held: Choices) -> None:
    x = torch.ones(1 << 20, device="xpu")
    torch.xpu.synchronize()
    _C.testing.hold_alone(held.kinds.index("cpu"))
    (row,) = xpurt.explain(x.tanh)
    assert row.why == "the program is faster on this device alone, as was measured"
    assert "takes no part in the program" in row.sentence


def test_time_without_work_does_not_count_against_a_device() -> None:
    """Time after a wait; but not time in which devices may have work."""
    assert auto(
        """
costs(400, 300)
x = torch.ones(1 << 20, device="xpu")
def left_out(wait):
    before = _C.testing.left_out_us()
    x.tanh()
    if wait: torch.xpu.synchronize()
    time.sleep(0.02)
    x.tanh()
    return _C.testing.left_out_us() - before
waited = [left_out(True) for _ in range(5)]
went_on = [left_out(False) for _ in range(20)]
print(min(waited) >= 18e3, min(went_on) < 1e3)
"""
    ) == ["True True"]


def test_what_one_device_alone_takes_is_learned_separately() -> None:
    """The times learned beside other devices are a guess there, and are kept."""
    assert auto(
        """
x = torch.ones(1 << 14, device="xpu")
def samples(calls):
    for _ in range(calls): x.tanh(); torch.xpu.synchronize()
    learned = _C.testing.learned_calls()
    return sum(sum(row[7]) for row in learned if row[0] == "aten::tanh")
beside = samples(60)
_C.testing.hold_alone(kinds.index("cpu"))
alone = samples(1)
print(beside >= 10, alone < beside, samples(60) > alone)
_C.testing.hold_alone(None)
print(beside <= samples(1) <= beside + 1)
"""
    ) == ["True True True", "True"]
