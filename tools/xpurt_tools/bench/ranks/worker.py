"""A rank: reads what to run from its input, a line each, and writes what it found."""

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import astuple
from datetime import timedelta
from typing import Any


def _take_a_processor(rank: int) -> None:
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {usable[rank % len(usable)]})


_take_a_processor(int(os.environ["RANK"]))  # before drivers count the processors

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from xpurt_tools.bench.layer_times import measured_layers  # noqa: E402
from xpurt_tools.bench.models import MODELS, training_step  # noqa: E402
from xpurt_tools.bench.ranks.memory import fsdp2_step, peak_bytes  # noqa: E402
from xpurt_tools.bench.row import SEED, Call  # noqa: E402

TIMEOUT = timedelta(seconds=120)


def all_reduce(size_bytes: str, device: str) -> Call:
    given = torch.zeros(int(size_bytes) // 4, device=device)
    return lambda: dist.all_reduce(given)


def _step_of(model: str, device: str, **options: Any) -> Call:
    torch.manual_seed(SEED)
    return training_step(MODELS[model](), device, **options)


def ddp(model: str, device: str) -> Call:
    """A step of training on all ranks, with a batch of its own for each."""
    return _step_of(model, device, wrap=DistributedDataParallel)


def alone(model: str, device: str) -> Call:
    """The same step on rank 0, which needs no other."""
    if dist.get_rank() != 0:
        return lambda: None
    return _step_of(model, device)


def layers(model: str, device: str) -> list[object]:
    """The layers of a network: bytes and microseconds; and the time of the rest."""
    torch.manual_seed(SEED)
    found, other_us = measured_layers(MODELS[model](), device)
    return [[astuple(each) for each in found], other_us]


STEPS_BY_NAME: dict[str, Callable[[str], Call]] = {"FSDP2": fsdp2_step}


def peak(step: str, device: str) -> int:
    """Of this rank's memory in training, in bytes."""
    return peak_bytes(lambda: STEPS_BY_NAME[step](device))


# What is timed.
WORK: dict[str, Callable[[str, str], Call]] = {
    "all_reduce": all_reduce,
    "DDP": ddp,
    "alone": alone,
}
# What returns its result.
ANSWERS: dict[str, Callable[[str, str], object]] = {
    "layers": layers,
    "peak": peak,
}


@functools.cache
def prepared(name: str, argument: str, device: str) -> Call:
    call = WORK[name](argument, device)
    call()
    return call


def seconds(call: Call, calls: int) -> float:
    torch.xpu.synchronize()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    torch.xpu.synchronize()
    return time.perf_counter() - begin


def answer_to(work: str, device: str, calls: int) -> object:
    """The answer to "DDP GPT": the name of a function here, and its first argument."""
    name, _, argument = work.partition(" ")
    if name in ANSWERS:
        return ANSWERS[name](argument, device)
    return seconds(prepared(name, argument, device), calls)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    dist.init_process_group(timeout=TIMEOUT)
    for line in sys.stdin:
        try:
            answer: dict[str, object] = {"found": answer_to(**json.loads(line))}
        except Exception as error:  # of any op
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
