"""Graphs that run op by op, by the code of eager mode, and what says so.

A graph runs op by op as a whole, since its kernels may write to its inputs: what is
found after the first launch comes too late. So all kernels of a graph are built when it
is compiled.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch._dynamo import symbolic_convert
from torch._inductor.exc import InductorError, OperatorIssue

from xpurt.compiler.warn_once import warn_once
from xpurt.errors import KernelBuildError

_FULLGRAPH = "xpurt_fullgraph"
_refused: ContextVar[bool] = ContextVar("xpurt_refused", default=False)


class NoKernels(Exception):
    """A graph would have to run op by op."""


@contextmanager
def refused() -> Iterator[None]:
    """Within it, a graph that would run op by op raises NoKernels: the program has it
    in another form."""
    token = _refused.set(True)
    try:
        yield
    finally:
        _refused.reset(token)


def keep_fullgraph() -> None:
    """Keeps whether the program that is being traced has to be one compiled graph. Its
    backward graph may be compiled later, when nothing is traced."""
    context = torch._guards.TracingContext.try_get()
    traced = getattr(symbolic_convert.tls, "current_tx", None)
    if context is not None and traced is not None:
        setattr(context, _FULLGRAPH, bool(traced.one_graph))


def announce(reason: str) -> None:
    """Warns, once per reason. Raises RuntimeError under `fullgraph=True`, and NoKernels
    within `refused()`."""
    if _refused.get():
        raise NoKernels(reason)
    context = torch._guards.TracingContext.try_get()
    if getattr(context, _FULLGRAPH, False):
        raise RuntimeError(
            "torch.compile(fullgraph=True) is asked for compiled code alone, and a graph "
            f"has to run op by op: {reason}. Leave fullgraph out to run it so."
        )
    warn_once(f"torch.compile runs op by op: {reason}")


def reason_of(error: BaseException) -> str:
    """Why a graph has no kernels, if that is what the error of a compilation says; ""
    for any other error."""
    found: Any = error.inner_exception if isinstance(error, InductorError) else error
    if isinstance(found, KernelBuildError):
        return found.summary
    if isinstance(found, OperatorIssue):  # its op is in the second line
        return " of ".join(line.strip() for line in str(found).splitlines()[:2])
    return str(found) if isinstance(found, NotImplementedError) else ""
