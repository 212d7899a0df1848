"""What will be computed for a lazy tensor, as text."""

import re

import torch
from torch import Tensor

from xpurt import _lazy
from xpurt.lazy.compilations import Compilation
from xpurt.lazy.compiled_graph import compilations

_SOURCE = re.compile(
    r'\[source="(?:[^"\\]|\\.)*"\]'
)  # of a node: the line that called it


def text(tensor: Tensor) -> str:
    """What will be computed for a lazy tensor: the traced nodes, the graph of aten ops
    that they become, and the code that the compiler made of it. If it is not compiled:
    why.

    Raises TypeError for a tensor of another device.
    """
    if tensor.device.type != "lazy":
        raise TypeError(
            f'text() takes a tensor of the device "lazy"; found one on {tensor.device}'
        )
    nodes = torch._C._lazy._get_tensors_text([tensor])
    graph = torch._C._lazy._get_tensors_backend([tensor])
    return f"{nodes}\n{graph}\n{_code_of(graph)}"


def _code_of(graph: str) -> str:
    wanted = _without_lines(graph)
    for each in reversed(compilations()):
        if _without_lines(each.text) == wanted:
            return _result_of(each)
    for name, text, runs, run_us, due_us in _lazy.lazy_graph_states():
        if _without_lines(text) == wanted:
            return f"{name} is not compiled yet: {_why_not(runs, run_us, due_us)}"
    return (
        "The graph is not compiled yet: it did not run. A graph that step() ran with "
        "other results is another graph: xpurt.lazy.compilations() has all."
    )


def _without_lines(graph: str) -> str:
    return _SOURCE.sub("", graph).strip()


def _result_of(found: Compilation) -> str:
    if found.error:
        return f"{found.graph} is not compiled: {found.error}"
    parameters = ", ".join(f"t{n} {each}" for n, each in enumerate(found.shapes))
    bounds = "".join(f"; {_bound(*each)}" for each in found.bounds.items())
    return f"{found.graph} was compiled for {parameters}{bounds}, to:\n{found.code}"


def _bound(symbol: str, sizes: tuple[int, int | None]) -> str:
    least, most = sizes
    to = "or more" if most is None else f"to {most:,}"
    return f"{symbol} is {least:,} {to}"


def _why_not(runs: int, run_us: float, due_us: float) -> str:
    if run_us == 0:
        return (
            f'{runs} run(s), none of them timed. With init(compile="auto") the second run '
            "is."
        )
    spent_ms = runs * run_us / 1e3
    return (
        f"{runs:,} runs of {run_us / 1e3:.3g} ms took {spent_ms:.3g} ms, and it is "
        f"compiled once they took {due_us / 1e3:.3g} ms"
    )
