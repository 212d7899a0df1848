"""Graphs that Dynamo divides, as for the buckets of DistributedDataParallel.

The parts are compiled one after the other. AOTAutograd returns tensors without memory
from the first call of a part, and the next part is compiled with them. It takes them
from the graph, which is one of CPU tensors by then (see Note [Graphs for the host]). So
they get the device of the program's tensors again.
"""

import functools
from collections.abc import Callable
from typing import Any

from torch._functorch._aot_autograd.runtime_wrappers import FakifiedOutWrapper

from xpurt.compiler import host_graph


def define() -> None:
    """Changes AOTAutograd."""
    FakifiedOutWrapper.pre_compile = _on_device(FakifiedOutWrapper.pre_compile)  # type: ignore[method-assign]


def _on_device(before: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(before)
    def pre_compile(wrapper: Any, graph: Any, *args: Any, **kwargs: Any) -> None:
        before(wrapper, graph, *args, **kwargs)
        for home in host_graph.homes_of(graph) if wrapper.out_metas else ():
            wrapper.out_metas = host_graph.results_on_device(wrapper.out_metas, home)

    return pre_compile
