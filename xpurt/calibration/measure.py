"""Times of the representatives on both tiers of a device, and its rates."""

import time
from collections.abc import Iterator

import torch

from xpurt import _C
from xpurt.calibration.representatives import (
    LETTERS,
    REPRESENTATIVES,
    Call,
    Representative,
)
from xpurt.kernels import Curve, Point, Rates, kernel_policy

# The tiers take turns, so that what else a machine does falls on both. A turn begins
# with a rest: the threads of PyTorch's kernels spin for some milliseconds after their
# last work, and would take a core from those of a kernel on a queue.
TURNS = 2
REST_S = 4e-3
LEAD_IN_S = 0.5e-3  # of calls that are not timed, and wake what sleeps
TURN_S = 3e-3
_FEWEST_CALLS = 2  # that are timed
# Where the quicker tier takes longer the curve ends: what is beyond is proportional.
_LONGEST_US = 6_000.0
# A curve that takes longer ends, once it has these points.
LONGEST_CURVE_S = 0.5
_FEWEST_POINTS = 3


def spent_us(index: int, policy: str, call: Call) -> float:
    """Until one call on an idle device has finished."""
    with kernel_policy(policy):
        _C.synchronize_device(index)
        begin = time.perf_counter_ns()
        call()
        _C.synchronize_device(index)
        return (time.perf_counter_ns() - begin) / 1e3


def best_us(index: int, call: Call, *policies: str) -> tuple[float, ...]:
    """The shortest time under each policy: what else a machine does makes them longer,
    never shorter."""
    for policy in policies:
        spent_us(index, policy, call)  # builds and allocates
    turns = [
        [turn_us(index, policy, call) for policy in policies] for _ in range(TURNS)
    ]
    return tuple(min(each) for each in zip(*turns, strict=True))


def turn_us(index: int, policy: str, call: Call) -> float:
    """The shortest time of a few calls in a row."""
    time.sleep(REST_S)
    for_us(LEAD_IN_S * 1e6, 1, index, policy, call)
    return min(for_us(TURN_S * 1e6, _FEWEST_CALLS, index, policy, call))


def for_us(
    wanted_us: float, fewest: int, index: int, policy: str, call: Call
) -> list[float]:
    """The times of so many calls at least, and until so much time was spent in them."""
    times: list[float] = []
    spent = 0.0
    while len(times) < fewest or spent < wanted_us:
        times.append(spent_us(index, policy, call))
        spent += times[-1]
    return times


def curve_of(index: int, one: Representative, letter: str) -> Curve:
    """The costs of a class in a type, on a device whose memory the host reads."""
    points: list[Point] = []
    begin = 0.0
    for log2 in range(one.smallest, one.largest + 1, one.step):
        call, elements = one.make(1 << log2, LETTERS[letter], f"xpu:{index}")
        native, kernel = best_us(index, call, "native", "sycl")
        points.append(Point(float(elements), native, kernel))
        if len(points) == 1:
            begin = time.perf_counter()  # kernels are there now
        if len(points) < _FEWEST_POINTS:
            continue
        late = time.perf_counter() - begin > LONGEST_CURVE_S
        if late or min(native, kernel) > _LONGEST_US:
            break
    return Curve(one.cost_class, letter, one.layout, smoothed(points))


def smoothed(points: list[Point]) -> tuple[Point, ...]:
    """A time that is longer than that of more elements was disturbed."""
    found: list[Point] = []
    native = kernel = float("inf")
    for point in reversed(points):
        native, kernel = min(native, point.native_us), min(kernel, point.kernel_us)
        found.append(Point(point.elements, native, kernel))
    return tuple(reversed(found))


def curves_of(index: int) -> Iterator[Curve]:
    for one in REPRESENTATIVES:
        for letter in one.letters:
            if letter == "d" and not torch.xpu.get_device_properties(index).has_fp64:
                continue
            yield curve_of(index, one, letter)


def rates_of(index: int, *, host_reads: bool) -> Rates:
    """What the device does at best."""
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
            best_us(index, call, policy)[0]
            for call in (
                lambda: torch.add(one, one),
                lambda: large + large,
                lambda: square @ square,
            )
        )
        return call, 3 * large.nbytes / moved, 2 * side**3 / flops

    launch, moved, flops = rates("sycl")
    native_call, native_moved, native_flops = rates("native")
    (copy,) = best_us(index, lambda: one.copy_(small_on_host), "auto")
    (large_copy,) = best_us(index, lambda: large.copy_(large_on_host), "auto")
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
