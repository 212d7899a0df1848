"""What is fused in the graph of a module's own forward: the table of patterns, and a
convolution or a linear layer with the batch norm, the addition and the activation that
follow it; dropout goes.

The longest chain is taken. A value that anything else reads ends it.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn
from torch.fx import Graph, Node
from torch.nn import functional as F

from xpurt.optimization import activations, fused_layers
from xpurt.optimization.activations import NONE, Activation
from xpurt.optimization.patterns.activation_modules import activation_of
from xpurt.optimization.patterns.graph_calls import child_of, may_write
from xpurt.optimization.patterns.table import fuse_patterns

_ADDITIONS: Final = (operator.add, operator.iadd, torch.add, "add", "add_")
_DROPOUTS: Final = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_CONVOLUTIONS: Final = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_NORMS: Final = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


@dataclass(slots=True)
class Fused:
    """What a graph now does as one. `members`: names of the modules that are no longer
    called by themselves."""

    members: set[str] = field(default_factory=set)
    rows: list[tuple[str, str]] = field(default_factory=list)  # the layer, and what


def fuse(
    module: nn.Module, graph: Graph, kind_of: Callable[[nn.Module], type[nn.Module]]
) -> Fused:
    """Changes the graph of the module's own forward. kind_of: the class of a child
    as the user wrote it."""
    found = Fused()
    for node in list(graph.nodes):
        layer = child_of(module, node)
        if layer is not None and kind_of(layer) in _DROPOUTS and len(node.args) == 1:
            found.members.add(str(node.target))
            _replace(graph, node, node.args[0])
        elif node.target is F.dropout and not node.kwargs.get("training", True):
            _replace(graph, node, node.args[0])
    members, rows = fuse_patterns(module, graph, kind_of)
    found.members |= members
    found.rows += rows
    for node in list(graph.nodes):
        layer = child_of(module, node)
        if layer is None or len(node.args) != 1 or node.kwargs:
            continue
        kind = kind_of(layer)
        if kind is nn.Linear or kind in _CONVOLUTIONS:
            _Chain(module, graph, node, kind, kind_of, found).fuse()
    graph.lint()
    return found


@dataclass(slots=True)
class _Chain:
    module: nn.Module
    graph: Graph
    layer: Node
    kind: type[nn.Module]
    kind_of: Callable[[nn.Module], type[nn.Module]]
    found: Fused

    def fuse(self) -> None:
        last, names = self.layer, []
        norm: str | None = None
        other: Node | None = None
        activation = NONE
        is_convolution = self.kind in _CONVOLUTIONS
        if is_convolution:
            layer: Any = child_of(self.module, self.layer)
            if not fused_layers.is_regular(layer):
                return
            after = self._reader(last)
            if after is not None and self._is_norm(after):
                norm, last = str(after.target), after
                names.append("batch norm")
        after = self._reader(last)
        if after is not None and (added := _added(after, last)) is not None:
            other, last = added, after
            names.append("addition")
        after = self._reader(last)
        if after is not None and (known := self._activation(after)) is not None:
            activation, last = known, after
            names.append(known.name)
        if last is self.layer or self._is_written_between(last):
            return
        self._replace(last, norm, other, activation, is_convolution)
        name = str(self.layer.target)
        what = "convolution" if is_convolution else "linear layer"
        self.found.rows.append((name, " + ".join([what, *names])))

    def _replace(
        self,
        last: Node,
        norm: str | None,
        other: Node | None,
        activation: Activation,
        is_convolution: bool,
    ) -> None:
        graph, (x,) = self.graph, self.layer.args
        members = {str(self.layer.target)} | ({norm} if norm else set())
        with graph.inserting_before(last):
            layer = graph.get_attr(str(self.layer.target))
            function: Callable[..., Any] = fused_layers.linear
            args: tuple[Any, ...] = (layer, x, other, activation)
            if is_convolution:
                function = fused_layers.convolution
                args = (layer, x, graph.get_attr(norm) if norm else None, *args[2:])
            made = graph.call_function(function, args)
        last.replace_all_uses_with(made)
        node = last
        while True:
            if node.op == "call_module":
                members.add(str(node.target))
            before = self.layer if node is self.layer else self._before(node, other)
            graph.erase_node(node)
            if node is self.layer:
                break
            node = before
        self.found.members |= members

    def _is_written_between(self, last: Node) -> bool:
        """Whether a node between may write to what the layer or the addition reads, which
        the fused op reads later."""
        node, chain = self.layer.next, {self.layer}
        while node is not last:
            if any(each in chain for each in node.all_input_nodes):
                chain.add(node)
            elif may_write(self.module, node):
                return True
            node = node.next
        return False

    def _before(self, node: Node, other: Node | None) -> Node:
        """The value of the chain that the node reads."""
        for each in node.all_input_nodes:
            if each is not other:
                return each
        raise AssertionError(node)

    def _reader(self, node: Node) -> Node | None:
        """The only one."""
        return next(iter(node.users)) if len(node.users) == 1 else None

    def _is_norm(self, node: Node) -> bool:
        child: Any = child_of(self.module, node)
        return (
            child is not None
            and self.kind_of(child) in _NORMS
            and child.track_running_stats
        )

    def _activation(self, node: Node) -> Activation | None:
        child = child_of(self.module, node)
        if child is not None:
            return activation_of(child) if len(node.args) == 1 else None
        return activations.of_call(node.target, node.args, node.kwargs)


def _added(node: Node, one: Node) -> Node | None:
    """What the node adds to `one`."""
    is_call = node.op in ("call_function", "call_method")
    if not is_call or node.target not in _ADDITIONS or node.kwargs:
        return None
    if len(node.args) != 2 or not all(isinstance(each, Node) for each in node.args):
        return None
    first, second = node.args
    if first is second:
        return None
    if node.target in ("add_", operator.iadd) and first is not one:
        return None  # it writes to what others may read
    other: Any = second if first is one else first
    return other  # type: ignore[no-any-return]


def _replace(graph: Graph, node: Node, by: Any) -> None:
    node.replace_all_uses_with(by)
    graph.erase_node(node)
