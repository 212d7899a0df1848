"""A pattern: nodes of a graph that become one call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch.fx import Graph, Node

from xpurt.optimization.patterns.graph_calls import may_write

# The qualified name of each parameter of the model, by the input of the graph.
Parameters = Mapping[Node, str]


@dataclass(frozen=True, slots=True)
class Match:
    """nodes: those that go, the last one is what others read.
    function, args: the call that they become.
    weight: of the layer that the report names."""

    nodes: tuple[Node, ...]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    weight: Node | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """matches, becomes: as formulas. find: the match that ends with a node."""

    name: str
    matches: str
    becomes: str
    find: Callable[[Node, Parameters], Match | None]


def replace(graph: Graph, match: Match) -> bool:
    """False if the match is none: others read values inside of it, or write to what it
    reads."""
    inside, last = set(match.nodes), match.nodes[-1]
    if any(
        not set(node.users) <= inside for node in match.nodes if node is not last
    ) or is_written_within(match.nodes):
        return False
    with graph.inserting_before(last):
        made = graph.call_function(match.function, match.args)
    made.meta = last.meta
    last.replace_all_uses_with(made)
    for node in sorted(match.nodes, reverse=True):
        graph.erase_node(node)
    return True


def is_written_within(nodes: tuple[Node, ...]) -> bool:
    """Whether another node may write between the first and the last: one call that
    replaces them reads its arguments where the last is."""
    node, last = min(nodes), nodes[-1]
    while node is not last:
        if node not in nodes and may_write(node):
            return True
        node = node.next
    return False
