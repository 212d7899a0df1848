"""Independent chains of long ops: home's kernel leaves the host free for the other
device. Made-up costs and a clock that stands, so only decisions are seen, and no speed."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import xpurt
from auto.choices import Choices
from xpurt import _C

LONG_US = 1e6
STEPS = 8

Taken = list[tuple[str, bool]]  # kind of the device, whether PyTorch's kernel ran


@pytest.fixture
def alike(choices: Choices) -> Iterator[Choices]:
    """Each kernel of each device takes as long. All are built; PyTorch's is in use."""
    x = torch.ones(2048, device="xpu")
    for device in (choices.cpu, choices.gpu):
        device()
        (x.tanh() + x).relu_()
    torch.xpu.synchronize()
    set_costs(choices)
    _C.testing.pretend_times([0.0])
    with xpurt.kernel_policy("auto"):
        yield choices
    _C.testing.pretend_times([])


def set_costs(
    choices: Choices, cpu_us: float = LONG_US, gpu_us: float = LONG_US
) -> None:
    times = {"cpu": cpu_us, "gpu": gpu_us}
    _C.set_device_costs(0, [(times[kind], 1e9, 1e9, 0, 1e9) for kind in choices.kinds])


def taken(function: Callable[[], object]) -> Taken:
    kinds = {d.name: d.kind for d in xpurt.physical_devices()}
    rows = [row for row in xpurt.explain(function) if row.op == "aten::tanh"]
    return [(kinds[row.device], row.tier == "native") for row in rows]


def chains(count: int, between: Callable[[Tensor], Tensor] = lambda x: x) -> Taken:
    """The last steps of chains that are submitted alternately."""
    starts = [torch.ones(2048, device="xpu") for _ in range(count)]
    torch.xpu.synchronize()

    def run() -> None:
        now = starts
        for _ in range(STEPS):
            now = [between(each.tanh()) for each in now]
        torch.xpu.synchronize()

    return [taken(run) for _ in range(3)][-1]


def test_one_chain_keeps_pytorch_s_kernel(alike: Choices) -> None:
    assert chains(1) == [("cpu", True)] * STEPS


def test_two_chains_run_on_two_devices(alike: Choices) -> None:
    assert chains(2) == [("cpu", False), ("gpu", False)] * STEPS


def test_a_slower_device_gets_fewer_of_three_chains(alike: Choices) -> None:
    set_costs(alike, gpu_us=2 * LONG_US)
    found = chains(3)
    assert all(not native for _, native in found)
    assert 0 < found.count(("gpu", False)) < found.count(("cpu", False))


def test_a_device_that_is_far_slower_changes_nothing(alike: Choices) -> None:
    set_costs(alike, gpu_us=40 * LONG_US)
    assert chains(2) == [("cpu", True)] * (2 * STEPS)


def test_short_ops_keep_pytorch_s_kernel(alike: Choices) -> None:
    set_costs(alike, cpu_us=100, gpu_us=100)
    assert chains(2) == [("cpu", True)] * (2 * STEPS)


def wait(x: Tensor) -> Tensor:
    x[0].item()
    return x


def synchronize(x: Tensor) -> Tensor:
    torch.xpu.synchronize()
    return x


def write_beside(x: Tensor) -> Tensor:
    """By an op that is too short to be decided."""
    x[:4].add_(x[:4])
    return x


def renormalize(x: Tensor) -> Tensor:
    """By an op that is never decided, as it has no kernel but PyTorch's."""
    return x.view(1, -1).renorm(2, 0, 1e9).view(-1)


@pytest.mark.parametrize("between", [wait, synchronize, write_beside, renormalize])
def test_a_program_that_waits_between_ops_is_one_chain(
    between: Callable[[Tensor], Tensor], alike: Choices
) -> None:
    assert chains(2, between) == [("cpu", True)] * (2 * STEPS)


def test_an_explanation_says_why(alike: Choices) -> None:
    chains(2)
    starts = [torch.ones(2048, device="xpu") for _ in range(2)]
    torch.xpu.synchronize()
    found = xpurt.explain(lambda: [each.tanh() for each in starts])
    assert next(iter(found)).why == (
        "PyTorch's kernel would block the host, which has work for other devices"
    )
