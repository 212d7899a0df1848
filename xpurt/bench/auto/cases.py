"""The cases that the suite `auto` times, and their limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from xpurt.bench.models import MODELS
from xpurt.bench.row import SEED, Call
from xpurt.bench.suites.dispatch import DISPATCH

CHAIN = 4
SIDE = 512
LARGE = 2048
LONG = 64 << 20


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of AUTO's time: `most` times that of the fastest of `against`.

    against: mappings. `most` below 1 requires a gain.
    together: compares with all of them at once, as if each did a part of the work and
        all ended together. 1 / `most` is then the efficiency of EngineCL's authors
        (Nozal, Bosque and Beivide, 2020).
        Bosque and Beivide, 2020).
    """

    most: float
    against: tuple[str, ...]
    together: bool = False

    def time(self, seconds: Mapping[str, float]) -> float:
        """The time that a limit of 1 stands for, from the times by mapping."""
        times = [seconds[mapping] for mapping in self.against]
        return 1 / sum(1 / each for each in times) if self.together else min(times)


@dataclass(frozen=True, slots=True)
class AutoCase:
    """One kind of work, and its limit.

    prepare: makes the tensors on xpu, and the call, which submits all of its work.
    auto: the mapping that is measured.
    slow_gpu: the factor by which a delay of each kernel slows down the GPU.
    group: cases whose geometric mean has a limit, too.
    calls: the calls per measurement.
    """

    name: str
    prepare: Callable[[], Call]
    limit: Limit
    auto: str = "AUTO"
    slow_gpu: float = 1.0
    group: str = ""
    calls: int = 1


def _matrices(count: int) -> list[torch.Tensor]:
    torch.manual_seed(SEED)
    # Their products neither vanish nor overflow.
    return [torch.randn(SIDE, SIDE) / SIDE**0.5 for _ in range(count)]


def _chains(count: int) -> Call:
    """Chains of products, independent of each other, submitted alternately."""
    starts = [each.to("xpu") for each in _matrices(count)]
    factors = [each.to("xpu") for each in _matrices(count)]

    def call() -> object:
        now = list(starts)
        for _ in range(CHAIN):
            now = [a @ b for a, b in zip(now, factors, strict=True)]
        return now

    return call


def _product() -> Call:
    torch.manual_seed(SEED)
    a, b = (torch.randn(LARGE, LARGE).to("xpu") for _ in range(2))
    return lambda: a @ b


def _pointwise() -> Call:
    x = torch.linspace(0, 1, LONG).to("xpu")

    def call() -> object:
        y = x * 2
        for _ in range(3):
            y = (y + x) * 0.5
        return y

    return call


def _one_element() -> Call:
    x = torch.ones(1, device="xpu")

    def call() -> object:
        y = x
        for _ in range(100):
            y = y + x
        return y

    return call


def _small_ops() -> Call:
    """Every row of the suite `dispatch` once: the time is the host's."""
    device = torch.device("xpu", torch.xpu.current_device())
    calls = [row.prepare(device).call for row in DISPATCH.rows]

    def call() -> object:
        return [each() for each in calls]

    return call


def _step(model: str) -> Call:
    torch.manual_seed(SEED)
    case = MODELS[model]()
    case.model.to("xpu")
    batch = [each.to("xpu") for each in case.batch]
    steps = torch.optim.SGD(case.model.parameters(), 1e-3, momentum=0.9)

    def call() -> object:
        steps.zero_grad()
        loss: Any = case.loss(case.model, *batch)
        loss.backward()
        steps.step()
        return None

    return call


ALONE = ("CPU", "GPU")
STEPS = tuple(
    AutoCase(
        f"{model} step",
        lambda model=model: _step(model),  # type: ignore[misc]
        Limit(1.05, ALONE),
        group="training steps",
    )
    for model in MODELS
)

CASES: tuple[AutoCase, ...] = (
    AutoCase(
        f"two chains of matmul {SIDE}", lambda: _chains(2), Limit(1 / 1.7, ALONE), calls=3
    ),
    AutoCase(f"matmul {LARGE}", _product, Limit(1 / 0.85, ALONE, together=True)),
    AutoCase("pointwise chain on 64M", _pointwise, Limit(1 / 0.85, ALONE, together=True)),
    *STEPS,
    AutoCase(
        f"matmul {SIDE}, GPU 20 times slower",
        lambda: _chains(2),
        Limit(1.05, ("CPU",)),
        slow_gpu=20,
        calls=3,
    ),
    AutoCase("100 additions of 1 element", _one_element, Limit(1.3, ("CPU",)), calls=20),
    AutoCase("ops of the suite dispatch, one device", _small_ops, Limit(1.05, ("CPU",)), "AUTO:CPU", calls=50),
    AutoCase("MLP step, one device", lambda: _step("MLP"), Limit(1.02, ("CPU",)), "AUTO:CPU"),
)  # fmt: skip

# Limits of a group's geometric mean of AUTO's time over that of the best single device.
GROUP_LIMITS = {"training steps": 1.02}
