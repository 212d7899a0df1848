"""A rank: reads what to run from its input, a line each, and writes what it found."""

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any


def _take_a_processor(rank: int) -> None:
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {usable[rank % len(usable)]})


_take_a_processor(int(os.environ["RANK"]))  # before drivers count the processors

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from xpurt.bench.models import MODELS, training_step  # noqa: E402
from xpurt.bench.row import SEED, Call  # noqa: E402

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


WORK: dict[str, Callable[[str, str], Call]] = {
    "all_reduce": all_reduce,
    "DDP": ddp,
    "alone": alone,
}


@functools.cache
def prepared(work: str, device: str) -> Call:
    """The call for "DDP GPT": the name of a function here, and its first argument."""
    name, _, argument = work.partition(" ")
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


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries may print
    dist.init_process_group(timeout=TIMEOUT)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            call = prepared(request["work"], request["device"])
            answer: dict[str, object] = {"found": seconds(call, request["calls"])}
        except Exception as error:  # of any op
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
