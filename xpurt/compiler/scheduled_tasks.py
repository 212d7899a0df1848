"""The ops that Inductor has scheduled, as tasks of a plan."""

from collections.abc import Iterable
from typing import Any

from torch._inductor.utils import sympy_product

from xpurt.compiler import current
from xpurt.compiler.form_estimate import FLOPS_OF_FUNCTION, FUNCTION_NS
from xpurt.compiler.kernel_plan import Task


def tasks_of(nodes: Iterable[Any], static: frozenset[str]) -> list[Task]:
    """The tasks of scheduled nodes that are not fused yet, in their order.

    static: names of the inputs that stay where they are from call to call.
    """
    listed = list(nodes)
    makers = {
        buffer: number
        for number, node in enumerate(listed)
        for buffer in node.get_buffer_names()
    }
    elements = [_elements(node) for node in listed]
    read_by_others: set[int] = set()
    found = []
    for number, node in enumerate(listed):
        reads, from_memory, given = [], 0.0, 0.0
        for dep in node.read_writes.reads:
            size_bytes = float(dep.numbytes_hint())
            maker = makers.get(dep.name)
            if maker is not None and maker != number:
                reads.append((maker, size_bytes))
                if elements[maker] == elements[number] is not None:
                    continue
                read_by_others.add(maker)
            elif dep.name in current.graph().graph_inputs and dep.name not in static:
                given += size_bytes
            from_memory += size_bytes
        found.append((node, tuple(reads), from_memory, given))
    outputs = set(current.graph().get_output_names())
    return [
        Task(
            node.get_name(),
            _flops(node, elements[number]),
            from_memory + _written(node, outputs, number in read_by_others),
            given,
            reads,
        )
        for number, (node, reads, from_memory, given) in enumerate(found)
    ]


def _elements(node: Any) -> float | None:
    """What a node that becomes a kernel loops over; None for an eager op."""
    if node.is_extern() or getattr(node, "_body", None) is None:
        return None
    sizes = current.graph().sizevars
    return float(sizes.optimization_hint(sympy_product(node.group[1]), fallback=1))


def _flops(node: Any, elements: float | None) -> float:
    if elements is None:
        return float(node.estimate_flops() or 0)
    counts = node._body.op_counts
    functions = sum(count for name, count in counts.items() if name in FUNCTION_NS)
    others = sum(counts.values()) - functions
    flops: float = elements * (FLOPS_OF_FUNCTION * functions + others)
    return flops


def _written(node: Any, outputs: set[str], read_by_others: bool) -> float:
    """Bytes that have to be in memory after the node."""
    names = node.get_buffer_names()
    if not (read_by_others or node.is_extern() or outputs & set(names)):
        return 0.0
    return sum(float(dep.numbytes_hint()) for dep in node.read_writes.writes)
