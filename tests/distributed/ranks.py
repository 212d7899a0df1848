"""The ranks of a process group: what each of them does.

A script for ranks defines functions, its *cases*, and ends with `main(globals())`. Each
case raises an error if something is wrong. All cases run in one process per rank: to
start PyTorch takes longer than all of them.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

RANKS = int(os.environ.get("WORLD_SIZE", 2))
# The prototype device that all ranks work on instead of xpu: its name and memory.
PROTOTYPE = "RANKS_ON_PROTOTYPE"


def _device() -> torch.device:
    """Of this rank, where a launcher has numbered it."""
    name, _, memory = os.environ.get(PROTOTYPE, "xpu").partition(":")
    if memory:
        import xpurt

        xpurt.prototype_device(name, memory)
    return torch.device(name, int(os.environ.get("LOCAL_RANK", 0)))


XPU = _device()
BACKEND = "xccl" if XPU.type == "xpu" else "prototype"
# How a rank that a launcher started names its mapping: the variable has precedence over
# the argument of set_xpu_mapping().
IN_PROGRAM = "SET_MAPPING"
TIMEOUT = timedelta(seconds=60)


@contextmanager
def host_copies() -> Iterator[None]:
    """Ops may be computed by the host on copies, as all those of sparse tensors are."""
    from xpurt import _C

    _C.set_fallback_mode("silent")
    try:
        yield
    finally:
        _C.set_fallback_mode("error")


def take_device() -> None:
    """Names the mapping in the program, if it is to, and takes the rank's device."""
    if mapping := os.environ.get(IN_PROGRAM):
        import xpurt

        xpurt.set_xpu_mapping(mapping)
    torch.get_device_module(XPU).set_device(XPU)


def cases(names: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """The cases of a script: its public functions without parameters."""
    return {
        name: value
        for name, value in names.items()
        if getattr(value, "__module__", None) == names["__name__"]
        and getattr(value, "__code__", None) is not None
        and value.__code__.co_argcount == 0
        and not name.startswith("_")
    }


def main(names: dict[str, Any], **options: Any) -> None:
    """Runs the cases in this rank, in their order, and prints what they found.

    The program's arguments are the names of cases; without any, all run. options: of the
    process group.
    """
    named = [each for each in sys.argv[1:] if each != "--times"]
    take_device()
    dist.init_process_group(timeout=TIMEOUT, **options)
    found = {}
    for name, case in cases(names).items():
        if named and name not in named:
            continue
        begin = time.monotonic()
        try:
            case()
            found[name] = "ok"
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            found[name] = f"{type(error).__name__}: {error} ({where.name})"
        if "--times" in sys.argv:
            print(name, round(time.monotonic() - begin, 2), file=sys.stderr)
    dist.destroy_process_group()
    print(json.dumps(found))
