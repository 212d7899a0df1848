"""Collectives of traced graphs, for the compiler and at the end of a process group: see Note
[Collectives of lazy graphs] in csrc/lazy/collective_call.h."""

import atexit
import functools

import torch

from xpurt import _lazy
from xpurt.compiler import device_ops
from xpurt.lazy import placed_draws


@functools.cache
def define() -> None:
    """Tells the compiler what takes the place of a collective in code for the host: the
    same, on the device. A second call does nothing."""
    for op in placed_draws.ops_with("token"):
        device_ops.call(op)
        device_ops.call(device_ops.define_for(op))


@functools.cache
def run_at_the_end() -> None:
    """Collectives that were traced run before their process group ends, and before the
    process does. A second call does nothing."""
    if not torch.distributed.is_available():
        return
    from torch._C._distributed_c10d import ProcessGroup

    before = ProcessGroup.shutdown

    @functools.wraps(before)
    def shutdown(group: ProcessGroup) -> None:
        _lazy.run_traced_collectives()
        before(group)

    ProcessGroup.shutdown = shutdown  # type: ignore[assignment, method-assign]
    atexit.register(_lazy.run_traced_collectives)
