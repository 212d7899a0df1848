"""Training steps of optimized models, and the same steps in eager PyTorch on CPU tensors,
in float32."""

from collections.abc import Callable
from functools import partial

import torch

import xpurt
from xpurt_tools.bench.models import Case, gpt, resnet, sgd, training_step
from xpurt_tools.bench.processor import at_most
from xpurt_tools.bench.row import LARGE, SEED, Row, Suite, Work


def _case(make: Callable[[], Case]) -> Case:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return make()


def _stock(make: Callable[[], Case], device: torch.device) -> Work:
    return Work(training_step(_case(make), "cpu"), elements=LARGE)


def _optimized(make: Callable[[], Case], kind: str, device: torch.device) -> Work:
    case = _case(make)
    model, batch = case.model.to(kind), [each.to(kind) for each in case.batch]
    model, optimizer = xpurt.optimize(
        model, optimizer=sgd(model.parameters()), dtype=torch.bfloat16, inplace=True
    )

    def step() -> None:
        optimizer.zero_grad()
        case.loss(model, *batch).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return Work(step, elements=LARGE)


def training_rows(name: str, make: Callable[[], Case], limit: float) -> list[Row]:
    return [
        Row(
            f"{name} step bf16, {kind} tensors",
            partial(_optimized, make, kind),
            partial(_stock, make),
            at_most=limit,
            long=True,
        )
        for kind in ("cpu", "xpu")
    ]


OPTIMIZE_TRAIN = Suite(
    "optimize-train",
    "training steps of optimized models in bf16, and eager PyTorch on CPU tensors in f32",
    target=1.0,
    processor=True,
    beside="stock",
    only_by_name=True,
    rows=(
        *training_rows("ResNet-18", resnet, at_most(with_amx=0.3, without=0.7)),
        *training_rows("GPT", gpt, at_most(with_amx=0.4, without=0.7)),
    ),
)
