"""Full steps of training: forward, backward, optimizer."""

from collections.abc import Callable

import torch

from xpurt_tools.bench.models import MODELS, sgd, training_step
from xpurt_tools.bench.row import LARGE, SEED, Row, Suite, Work

OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": sgd,
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, 1e-3),
}
# The pairs of a quick run.
QUICK = (("MLP", "SGD"), ("MLP", "AdamW"), ("ResNet-18", "SGD"), ("GPT", "AdamW"))


def _row(model: str, optimizer: str) -> Row:
    def prepare(device: torch.device) -> Work:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            case = MODELS[model]()
        step = training_step(case, device, OPTIMIZERS[optimizer])
        return Work(step, elements=LARGE)

    long = (model, optimizer) not in QUICK
    return Row(f"{model} {optimizer}", prepare, long=long)


TRAIN = Suite(
    "train",
    "full steps of an MLP, of ResNet-18 on 32x32, of a GPT with 4 layers",
    target=0.75,
    rows=tuple(_row(model, each) for model in MODELS for each in OPTIMIZERS),
)
