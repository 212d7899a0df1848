"""Numbers of loops: those that a compiled loop reads from tensors, and those that a
loop carries.

Inductor makes a `while_loop` of `scan`, whose body takes the number of its step from a
tensor. A compiler's tensors have no elements, so PyTorch refuses that unless a program
sets `torch._dynamo.config.capture_scalar_outputs`, for CPU tensors, too.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import GraphModule


@contextmanager
def allowed(graph: GraphModule) -> Iterator[None]:
    """Within it, a graph that has `scan` is compiled with numbers that are not known
    yet."""
    mode = _mode(graph) if _has_scan(graph) else None
    if mode is None:
        yield
        return
    before = mode.allow_scalar_outputs
    mode.allow_scalar_outputs = True
    try:
        yield
    finally:
        mode.allow_scalar_outputs = before


def why_op_by_op(graph: GraphModule) -> str:
    """Why Inductor can't compile the loops of a graph; "" if it can. One of its passes
    refuses numbers among the carried values, for CPU tensors, too."""
    for module in graph.modules():
        nodes = module.graph.nodes if isinstance(module, GraphModule) else ()
        for node in nodes:
            if node.target is torch.ops.higher_order.while_loop and any(
                not isinstance(getattr(each, "meta", {}).get("val"), torch.Tensor)
                for each in node.args[2]
            ):
                return "while_loop carries a Python number, which Inductor refuses"
    return ""


def _has_scan(graph: GraphModule) -> bool:
    return any(
        module.graph.find_nodes(
            op="call_function", target=torch.ops.higher_order.scan, sort=False
        )
        for module in graph.modules()
        if isinstance(module, GraphModule)
    )


def _mode(graph: GraphModule) -> FakeTensorMode | None:
    for node in graph.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, FakeTensor):
            return value.fake_mode
    return None
