"""The forward of one module as a graph, in which the modules that it calls are nodes.

Note [Own forwards]
~~~~~~~~~~~~~~~~~~~
Each module's own `forward` is traced by itself, and calls its children as before. So
the hierarchy, the names of parameters, and hooks stay. The trace is made with symbols
instead of tensors, by `torch.fx`, and holds for calls like that one: in evaluation
mode, with exactly the required arguments, each a tensor. Any other call takes the
module's forward as it was written. A forward is left as it is if its source asks for
what a symbol can't answer, or has effects that a trace would lose.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, Final

from torch import nn
from torch.fx import Graph, Node, Tracer

# Their answer for a symbol is not that for a tensor.
_QUESTIONS: Final = {
    "isinstance",
    "type",
    "hasattr",
    "getattr",
    "callable",
    "issubclass",
}


class NotTraceable(Exception):
    """Why a forward is left as it is."""


class _ChildrenAreNodes(Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return True


def trace(module: nn.Module, name: str = "forward") -> Graph:
    """The graph of the method of that name. Raises NotTraceable."""
    forward = getattr(type(module), name)
    parameters = _required_parameters(forward)
    _check_source(forward)
    tracer = _ChildrenAreNodes()
    tracer.traced_func_name = name
    optional = {
        name: each.default
        for name, each in inspect.signature(forward).parameters.items()
        if each.default is not each.empty
    }
    try:
        graph: Graph = tracer.trace(module, concrete_args=optional or None)
    except Exception as error:  # whatever the user's code raises for a symbol
        reason = str(error).split(". ")[0] or type(error).__name__
        raise NotTraceable(f"torch.fx can't trace it: {reason}") from error
    found = [node for node in graph.nodes if node.op == "placeholder"]
    for node in found[len(parameters) :]:
        _erase_with_readers(graph, node)
    return graph


def _erase_with_readers(graph: Graph, node: Node) -> None:
    """Of an optional argument, which has its default: all that reads its symbol are the
    tracer's own assertions that it does."""
    for reader in list(node.users):
        _erase_with_readers(graph, reader)
    graph.erase_node(node)


def _required_parameters(forward: Callable[..., Any]) -> list[str]:
    names = []
    for name, each in list(inspect.signature(forward).parameters.items())[1:]:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise NotTraceable("it takes any number of arguments")
        if each.default is each.empty:
            if each.kind is each.KEYWORD_ONLY:
                raise NotTraceable(f"{name} has to be given by name")
            names.append(name)
    return names


def _check_source(forward: Callable[..., Any]) -> None:
    try:
        source = textwrap.dedent(inspect.getsource(forward))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError) as error:
        raise NotTraceable("its source is not at hand") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _QUESTIONS:
                raise NotTraceable(f"it calls {node.func.id}()")
            if node.func.id == "print":
                raise NotTraceable("it prints")
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        if any(_is_attribute(each) for each in targets):
            raise NotTraceable("it assigns to an attribute")
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.Await):
            raise NotTraceable("it has effects outside of itself")
        if isinstance(node, ast.With | ast.Try):
            raise NotTraceable("it has a with or a try, which a trace would lose")


def _is_attribute(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_is_attribute(each) for each in target.elts)
    while isinstance(target, ast.Subscript):
        target = target.value
    return isinstance(target, ast.Attribute)
