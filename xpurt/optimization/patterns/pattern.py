"""A pattern: nodes of a graph that become one call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.fx import Graph, Node

from xpurt.optimization.patterns.graph_calls import child_of, may_write

KindOf = Callable[[nn.Module], type[nn.Module]]


@dataclass(frozen=True, slots=True)
class Match:
    """nodes: those that go, the last one is what others read.
    function, args: the call that they become; a child module stands for itself.
    layer: what the report names, below the module."""

    nodes: tuple[Node, ...]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    layer: str = ""


@dataclass(frozen=True, slots=True)
class Pattern:
    """matches, becomes: as formulas. find: the match that ends with a node of the graph
    of a module's forward."""

    name: str
    matches: str
    becomes: str
    find: Callable[[nn.Module, Node, KindOf], Match | None]


def replace(module: nn.Module, graph: Graph, match: Match) -> set[str] | None:
    """The names of the modules that are no longer called by themselves; None if the match
    is none: others read values inside of it, or write to what it reads."""
    inside, last = set(match.nodes), match.nodes[-1]
    if any(
        not set(node.users) <= inside for node in match.nodes if node is not last
    ) or _is_written_between(module, match):
        return None
    called = {str(node.target) for node in match.nodes if node.op == "call_module"}
    with graph.inserting_before(last):
        args = tuple(
            graph.get_attr(_name_of(module, each))
            if isinstance(each, nn.Module)
            else each
            for each in match.args
        )
        made = graph.call_function(match.function, args)
    last.replace_all_uses_with(made)
    for node in sorted(match.nodes, reverse=True):
        graph.erase_node(node)
    return called


def _name_of(module: nn.Module, child: nn.Module) -> str:
    names: dict[nn.Module, str] = {each: name for name, each in module.named_modules()}
    return names[child]


def _is_written_between(module: nn.Module, match: Match) -> bool:
    """The one call reads its arguments where the last node is."""
    node, last = min(match.nodes), match.nodes[-1]
    while node is not last:
        if node not in match.nodes and may_write(module, node):
            return True
        node = node.next
    return False


def linear_child(module: nn.Module, node: Any, kind_of: KindOf) -> nn.Linear | None:
    """The linear layer that a node calls, of PyTorch's own class."""
    child = child_of(module, node)
    if not isinstance(child, nn.Linear) or kind_of(child) is not nn.Linear:
        return None
    return child if len(node.args) == 1 and not node.kwargs else None
