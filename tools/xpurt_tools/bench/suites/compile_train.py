"""Compiled training steps: torch.compile of forward and loss on CPU tensors and on xpu, and
the same steps in eager mode on xpu."""

from collections.abc import Callable
from functools import partial

import torch

from xpurt_tools.bench.models import Case, gpt, resnet, sgd, training_step
from xpurt_tools.bench.row import LARGE, SEED, Call, Row, Suite, Work

Optimizer = Callable[..., torch.optim.Optimizer]


def _step(
    make: Callable[[], Case],
    optimizer: Optimizer,
    device: torch.device | str,
    *,
    compiled: bool,
) -> Call:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        case = make()
    if compiled:
        case = Case(case.model, case.batch, torch.compile(case.loss))
    return training_step(case, device, optimizer)


def compiled_step(name: str, make: Callable[[], Case], optimizer: Optimizer) -> Row:
    def prepare(device: torch.device) -> Work:
        return Work(_step(make, optimizer, device, compiled=True), elements=LARGE)

    def eager() -> tuple[Call, Call]:
        return _step(make, optimizer, "xpu", compiled=False), torch.xpu.synchronize

    return Row(
        name,
        prepare,
        others={"eager xpu": eager},
        others_at_most={"eager xpu": 1.02},
        long=True,
        compiled=True,
    )


COMPILE_TRAIN = Suite(
    "compile-train",
    "training steps with forward and loss compiled, on CPU tensors and on xpu, f32",
    target=0.9,
    row_limit=0.9,
    processor=True,
    rows=(
        compiled_step("GPT AdamW", gpt, partial(torch.optim.AdamW, lr=1e-3)),
        compiled_step("ResNet-18 SGD", resnet, sgd),
    ),
)
