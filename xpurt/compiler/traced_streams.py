"""The current stream in what Dynamo traces.

Note [Streams of traced code]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Where an accelerator is available, Dynamo asks for its current stream when a trace begins,
and has each call of the compiled code ask for it again. The first starts the devices of
a program that has only CPU tensors; the second takes as long as the guards of a small
module. So a trace begins without a stream until xpu is used, and code that no stream is
part of does not ask for one.
"""

import functools
from collections import deque
from types import ModuleType
from typing import Any

import torch

_torch: Any = torch  # it has few types here


def change(_: ModuleType) -> None:
    """Called at the import of torch._dynamo.convert_frame. A second call does nothing."""
    from torch._dynamo import graph_bytecode_inputs, output_graph
    from torch._dynamo.variables import streams

    state: Any = streams.SymbolicStreamState
    begin, current, registered = state.__init__, state.cur_stream, graph_bytecode_inputs
    if hasattr(begin, "__wrapped__"):
        return
    traced: list[Any] = [None]  # the stream that the newest trace began with

    @functools.wraps(begin)
    def __init__(self: Any) -> None:
        self.cur_stream_stack = deque()
        registered.reset_user_object_tracking()
        if _is_used():
            begin(self)
        traced[0] = next(iter(self.cur_stream_stack), None)

    @functools.wraps(current)
    def cur_stream(self: Any, device: torch.device | None = None) -> Any:
        if not self.cur_stream_stack:
            _start_xpu()
        return current(self, device)

    def has_user_objects() -> bool:
        count = len(registered.index_to_bytecode_constructor)
        if count != 1 or traced[0] is None:
            return count > 0
        return not _is_lazy(traced[0])

    state.__init__, state.cur_stream = __init__, cur_stream
    output_graph.has_user_objects = has_user_objects


def _is_used() -> bool:
    accelerator = torch._C._accelerator_getAccelerator()  # starts nothing
    is_xpu = accelerator is not None and accelerator.type == "xpu"
    return not is_xpu or bool(_torch.xpu.is_initialized())


def _is_lazy(stream: Any) -> bool:
    """Whether nothing that is traced has read the stream."""
    return hasattr(stream, "is_realized") and not stream.is_realized()


def _start_xpu() -> None:
    """Its first use is in code that is traced: this code runs as it is."""
    from torch._dynamo.exc import unimplemented

    _torch.xpu.init()
    unimplemented(
        gb_type="First use of xpu in traced code",
        context="the current stream",
        explanation="xpu was not used before, and a trace begins with its stream.",
        hints=["Call torch.xpu.init() before."],
    )
