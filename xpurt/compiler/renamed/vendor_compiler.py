"""Compilers of vendors, which take whole graphs of a renamed device."""

from collections.abc import Callable, Sequence
from typing import Any

from torch._functorch._aot_autograd.utils import make_boxed_func
from torch.fx import GraphModule

from xpurt.compiler import op_by_op
from xpurt.compiler.renamed.devices import CompilesGraphs


def compile_graphs(
    type: str,
    function: CompilesGraphs,
    decompositions: dict[Any, Callable[..., Any]],
    model: GraphModule,
    inputs: Sequence[Any],
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo by a vendor's function: its forward and its backward are
    a graph each. See `xpurt.prototype.register_compiler`."""
    from torch._dynamo.backends.common import aot_autograd

    def compile(graph: GraphModule, examples: Sequence[Any]) -> Callable[..., Any]:
        try:
            made = function(graph, list(examples))
        except NotImplementedError as error:
            op_by_op.announce(f"the compiler of {type} refused a graph: {error}")
            made = graph.forward
        if not callable(made):
            raise TypeError(
                f"the compiler of {type} returned {made!r}; it has to return a function "
                "of the graph's inputs, or to raise NotImplementedError"
            )
        return make_boxed_func(made)

    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=compile, bw_compiler=compile, decompositions=decompositions
    )(model, inputs)
    return compiled
