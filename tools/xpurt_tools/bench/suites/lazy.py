"""Lazy tensors: the same work traced, and by eager ops on xpu."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from xpurt_tools.bench.models import Case, classification, gpt, training_step
from xpurt_tools.bench.row import LARGE, SEED, Row, Suite, Work, drawn

TRACED_OPS = 100


def _device(eager: bool) -> str:
    if eager:
        return "xpu"
    import xpurt.lazy

    xpurt.lazy.init()
    return "lazy"


def _cut(eager: bool) -> None:
    if not eager:
        torch._C._lazy._mark_step("", [], wait=False)


def _pointwise(device: torch.device, *, eager: bool = False) -> Work:
    (x,) = (each.to(_device(eager)) for each in drawn(((4 << 20,),), torch.float32))

    def call() -> Tensor:
        y = x
        for _ in range(5):
            y = (y * 1.5 - 0.25).abs() + 0.5
        _cut(eager)
        return y

    return Work(call, elements=4 << 20)


def _tracing(device: torch.device, *, eager: bool = False) -> Work:
    (x,) = (each.to(_device(eager)) for each in drawn(((64,),), torch.float32))

    def call() -> None:
        y = x
        for _ in range(TRACED_OPS):
            y = y * 1.5

    return Work(call, elements=64)


def _mlp() -> Case:
    model = nn.Sequential(
        *(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()),
        nn.Linear(256, 10),
    )
    batch = torch.randn(64, 784), torch.randint(10, (64,))
    return Case(model, batch, classification)


def _lenet() -> Case:
    """LeNet-5 (LeCun and others, 1998), with ReLU and max pooling."""
    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
        nn.Linear(84, 10),
    )
    batch = torch.randn(64, 1, 28, 28), torch.randint(10, (64,))
    return Case(model, batch, classification)


def _training(
    make: Callable[[], Case], device: torch.device, *, eager: bool = False
) -> Work:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        case = make()
    step = training_step(case, _device(eager))

    def call() -> None:
        step()
        _cut(eager)

    return Work(call, elements=LARGE)


def _row(name: str, prepare: Callable[..., Work], at_most: float | None) -> Row:
    beside = partial(prepare, eager=True)
    return Row(name, prepare, beside, at_most=at_most, compiled=True)


LAZY = Suite(
    "lazy",
    "lazy tensors, whose graphs run on xpu, and eager mode on xpu",
    target=1.0,
    processor=True,
    beside="eager",
    only_by_name=True,
    rows=(
        _row("20 pointwise ops, 4M", _pointwise, 0.35),
        _row("MLP step", partial(_training, _mlp), 1.2),
        _row("LeNet step", partial(_training, _lenet), 1.0),
        _row("GPT step", partial(_training, gpt), 1.0),
        _row(f"{TRACED_OPS} ops of 64 elements, traced alone", _tracing, None),
    ),
)
