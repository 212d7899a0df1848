"""Times of the probe ops on both tiers of a device, and its rates."""

import math
import time
from collections.abc import Iterable, Iterator

import torch

from xpurt import _C
from xpurt.calibration.noise import Watch
from xpurt.calibration.probe_ops import (
    LETTERS,
    PROBE_OPS,
    Call,
    ProbeOp,
)
from xpurt.calibration.search import Search
from xpurt.kernels import Curve, Point, Rates, kernel_policy

# The least time (microseconds) and number of calls of a round, which repeats one call
# on one tier.
ROUND_US = 600.0
_FEWEST_CALLS = 3
# The threads of PyTorch's kernels spin for some milliseconds after their last work.
# They would take cores from the threads of a kernel on a queue.
REST_S = 4e-3
# The number of curves whose rounds share one pause of REST_S.
_TOGETHER = 4


def spent_us(index: int, policy: str, call: Call) -> float:
    """Microseconds until one call on an idle device has finished."""
    with kernel_policy(policy):
        _C.synchronize_device(index)
        begin = time.perf_counter_ns()
        call()
        _C.synchronize_device(index)
        return (time.perf_counter_ns() - begin) / 1e3


def round_us(index: int, policy: str, call: Call) -> float:
    """The shortest time of a few calls in a row; the first of them wakes idle
    threads."""
    shortest, spent, calls = math.inf, 0.0, 0
    while calls < _FEWEST_CALLS or spent < ROUND_US:
        us = spent_us(index, policy, call)
        shortest, spent, calls = min(shortest, us), spent + us, calls + 1
    return shortest


def rounds_us(index: int, call: Call, policy: str) -> list[float]:
    """The times of three rounds, in microseconds."""
    spent_us(index, policy, call)  # builds and allocates
    time.sleep(REST_S)
    return [round_us(index, policy, call) for _ in range(3)]


class Measured:
    """A cost class in one type and layout, with its measurements."""

    def __init__(self, one: ProbeOp, letter: str) -> None:
        self._one = one
        self._letter = letter
        self._logs = range(one.smallest, one.largest + 1, one.step)
        self._elements: dict[int, int] = {}
        self.search = Search(len(self._logs), one.step)

    def calls(self, index: int) -> Iterator[tuple[int, Call]]:
        """The calls whose next rounds are needed, with their positions in the
        search."""
        for place in self.search.wanted():
            call, self._elements[place] = self._one.make(
                1 << self._logs[place], LETTERS[self._letter], f"xpu:{index}"
            )
            yield place, call

    def curve(self) -> Curve:
        points = (
            Point(float(self._elements[place]), native, kernel)
            for place, native, kernel in self.search.best()
        )
        one = self._one
        return Curve(one.cost_class, self._letter, one.layout, tuple(points))


def take_rounds(index: int, some: Iterable[Measured]) -> None:
    """Takes one round of each size that is needed: kernels first, then PyTorch's."""
    calls = [
        (each.search, place, call) for each in some for place, call in each.calls(index)
    ]
    for search, place, call in calls:
        if place not in search:
            spent_us(index, "sycl", call)  # builds
    time.sleep(REST_S)
    kernels = [round_us(index, "sycl", call) for _, _, call in calls]
    natives = [round_us(index, "native", call) for _, _, call in calls]
    for (search, place, _), native, kernel in zip(calls, natives, kernels, strict=True):
        search.note(place, native, kernel)


def curves_of(index: int, watch: Watch) -> tuple[Curve, ...]:
    """The cost curves of all classes, on a device whose memory the host can read.

    Each pass takes one round of all classes. So a temporary load of the machine does
    not affect all rounds of one class.
    """
    has_fp64 = torch.xpu.get_device_properties(index).has_fp64
    found = [
        Measured(one, letter)
        for one in PROBE_OPS
        for letter in one.letters
        if letter != "d" or has_fp64
    ]
    while wanted := [each for each in found if each.search.wanted()]:
        for begin in range(0, len(wanted), _TOGETHER):
            take_rounds(index, wanted[begin : begin + _TOGETHER])
            watch.look()
    for each in found:
        for rounds in each.search.rounds():
            watch.compare(rounds)
    return tuple(each.curve() for each in found)


def rates_of(index: int, watch: Watch, *, host_reads: bool) -> Rates:
    """The best rates of the device."""

    def best_us(index: int, call: Call, policy: str) -> float:
        rounds = rounds_us(index, call, policy)
        watch.look()
        watch.compare(rounds)
        return min(rounds)

    device = f"xpu:{index}"
    one = torch.ones(1, device=device)
    large = torch.ones(1 << 22, device=device)
    side = 512
    square = torch.rand(side, side).to(device)
    small_on_host, large_on_host = torch.ones(1), torch.ones(1 << 22)

    def rates(policy: str) -> tuple[float, float, float]:
        if policy == "native" and not host_reads:
            return 0.0, 0.0, 0.0
        call, moved, flops = (
            best_us(index, call, policy)
            for call in (
                lambda: torch.add(one, one),
                lambda: large + large,
                lambda: square @ square,
            )
        )
        return call, 3 * large.nbytes / moved, 2 * side**3 / flops

    launch, moved, flops = rates("sycl")
    native_call, native_moved, native_flops = rates("native")
    copy = best_us(index, lambda: one.copy_(small_on_host), "auto")
    large_copy = best_us(index, lambda: large.copy_(large_on_host), "auto")
    return Rates(
        launch_us=launch,
        native_call_us=native_call,
        bytes_per_us=moved,
        native_bytes_per_us=native_moved,
        flops_per_us=flops,
        native_flops_per_us=native_flops,
        copy_launch_us=copy,
        copy_bytes_per_us=large.nbytes / max(large_copy - copy, 1e-3),
    )
