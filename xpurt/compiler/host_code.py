"""Inductor's code for the CPU, called with xpu tensors.

Note [Two keys for one graph]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Inductor keeps compiled graphs on disk, by a key made from the graph. A graph for the
host is equal to that of the same program on CPU tensors, but its results belong on xpu.
So the key has to name their home. Inductor asks each device for a pass of its own, and
puts the pass's uuid into the key: xpu's pass changes nothing, and its uuid is the home
of the graph that is being compiled. The home is an attribute of the compiled graph, so
it is kept on disk with it. AOTAutograd keeps graphs, too. Its key has the devices of the
inputs, and the uuid while no graph is compiled. So the sources of this package, which
decide what is kept, are always part of the uuid.
"""

import functools
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.utils import get_donated_idxs

from xpurt import _C
from xpurt.compiler.host_graph import Home

_home: ContextVar[Home | None] = ContextVar("xpurt_home", default=None)


class KeyOfHome(CustomGraphModulePass):
    """Adds the home of a graph's tensors to Inductor's key. Changes no graph."""

    def __call__(self, gm: torch.fx.GraphModule) -> None:
        pass

    def uuid(self) -> object:
        return f"xpurt {_sources()} {_home.get()}"


@functools.cache
def _sources() -> str:
    """A digest of this package: other sources may compile to other code."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@contextmanager
def compiling(home: Home | None) -> Iterator[None]:
    """Within it, graphs are compiled whose outputs belong to `home`."""
    token = _home.set(home)
    try:
        yield
    finally:
        _home.reset(token)


def keep_home(compiled: Any, *, is_backward: bool) -> Any:
    """Adds the home of the graph that is being compiled to its compiled form.

    The code of a backward graph may write to saved tensors, whose last use it is: a
    gradient may be in the memory of one.
    """
    compiled.xpurt_home = _home.get()
    donated = get_donated_idxs() if is_backward else None
    compiled.xpurt_donated = frozenset(donated or ())
    return compiled


def take_xpu_tensors(compiled: Any) -> None:
    """Makes a compiled graph with a home one of xpu tensors."""
    home: Home | None = getattr(compiled, "xpurt_home", None)
    if home is not None:
        written = compiled.xpurt_donated.union(compiled.mutated_input_idxs)
        compiled.current_callable = host_code(
            compiled.current_callable, home, sorted(written)
        )


def host_code(
    function: Callable[[list[Any]], Any], home: Home, written: list[int]
) -> Callable[[list[Any]], list[Any]]:
    """A function of xpu tensors that calls `function` with CPU tensors over the same
    bytes. See Note [Compiled host code].

    written: the positions of the inputs that `function` writes to, ascending.
    """
    return _C.HostCode(
        function, home.index, written, list(home.on_device), list(home.returned)
    )
