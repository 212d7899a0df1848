"""Compiles traced graphs by torch.compile's own compiler, and runs each in the faster form."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from xpurt.compiler.call_time import clock_for
from xpurt.compiler.paired_rounds import PairedRounds, Turn
from xpurt.lazy import placed_draws
from xpurt.lazy.traced_graph import NumberIsNeeded, NumberValue, function_of

Code = Callable[[list[Tensor]], list[Tensor]]


@dataclass(frozen=True, slots=True)
class Compilation:
    """A traced graph that was compiled, or the reason why it was not."""

    nodes: int
    seconds: float
    constants: dict[int, NumberValue]  # numbers of the program, by parameter
    error: str  # "": it was compiled
    text: str  # TorchScript


_compilations: list[Compilation] = []


def compilations() -> list[Compilation]:
    """The graphs that were compiled in this process, or could not be, in their order."""
    return list(_compilations)


def compile_graph(
    graph: Any, arguments: list[Tensor], op_by_op: Code
) -> Callable[[list[Tensor]], list[Tensor]] | None:
    """A program that runs `graph` in the faster form. None if it can't be compiled."""
    begin = time.perf_counter()
    constants: dict[int, NumberValue] = {}
    error, compiled = "", None
    try:
        placed_draws.define()
        compiled = _compile(graph, arguments, constants)
    except Exception as found:  # whatever the compiler lacks: the graph runs op by op
        error = f"{type(found).__name__}: {str(found).strip().splitlines()[0]}"
    _compilations.append(
        Compilation(
            nodes=sum(1 for each in graph.nodes() if each.kind() != "prim::Constant"),
            seconds=time.perf_counter() - begin,
            constants=constants,
            error=error,
            text=str(graph),
        )
    )
    if compiled is None:
        return None
    index = next((each.device.index for each in arguments if each.is_xpu), 0)
    return Program(op_by_op, compiled, constants, index)


def _compile(
    graph: Any, arguments: list[Tensor], constants: dict[int, NumberValue]
) -> Callable[..., Any]:
    from torch._inductor import compile_fx
    from torch.fx.experimental.proxy_tensor import make_fx

    with torch.no_grad():
        while True:
            function = function_of(graph, constants)
            try:
                traced = make_fx(function, tracing_mode="fake")(*arguments)
                break
            except NumberIsNeeded as needed:
                for each in needed.parameters:
                    constants[each] = arguments[each].item()
        compiled = compile_fx.compile_fx(traced, arguments)
        return cast(Callable[..., Any], compiled)


class Program:
    """A graph op by op and compiled. Each call runs one form, the faster one as measured:
    see Note [Paired rounds]. Runs with other constants are op by op."""

    def __init__(
        self,
        op_by_op: Code,
        compiled: Callable[..., Any],
        constants: dict[int, NumberValue],
        index: int,
    ) -> None:
        self._op_by_op = op_by_op
        self._compiled = compiled
        self._constants = constants
        self._index = index
        self._clock = clock_for(index)
        # It is compiled already, and the time op by op is known to be worth the trial.
        self._rounds = PairedRounds(native_us=1.0, kernels_us=0.0, build_us=0.0)

    def __call__(self, arguments: list[Tensor]) -> list[Tensor]:
        if any(
            arguments[place].item() != value for place, value in self._constants.items()
        ):
            return self._op_by_op(arguments)
        turn = self._rounds.next()
        if not turn.timed:
            return self._run(turn, arguments)
        stream = torch.xpu.current_stream(self._index)
        stream.synchronize()
        elapsed_us = self._clock()
        results = self._run(turn, arguments)
        stream.synchronize()
        self._rounds.record(turn.kernels, elapsed_us())
        return results

    def _run(self, turn: Turn, arguments: list[Tensor]) -> list[Tensor]:
        if not turn.kernels:
            return self._op_by_op(arguments)
        with torch.no_grad():
            return list(self._compiled(*arguments))
