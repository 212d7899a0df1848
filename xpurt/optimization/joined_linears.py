"""Linear layers of one input as one product: queries, keys and values of a token.

Note [Layers of one input]
~~~~~~~~~~~~~~~~~~~~~~~~~~
A module's source says which of its linear layers are called with the same variable. The
first that is called computes the results of all, and each other one takes its own if it
is called with the same tensor in the same version. So no call has to be foreseen, hooks
and caches stay where they are, and the results are those of each layer by itself. Layers
whose results are not taken, as in a branch, are not joined any more.

It is for a few tokens at a time in bfloat16 and float16. There three layers of 768 take
0.6 of the time as one, and with 16 tokens 0.8 to 1.3, since the results have to be made
contiguous (processor time of one thread, AMD EPYC, 2026-11-26). In float32 the time is
that of reading the weights.

A tensor that was made under torch.inference_mode has no version, and its layers are not
joined.
"""

import ast
import inspect
import textwrap
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from xpurt.optimization.fused_layers import joined_linear

_MOST_ROWS: Final = 4

_NAME: Final = "_layers_of_one_input"


class LayersOfOneInput:
    """Linear layers that are called with the same tensor, one after the other."""

    def __init__(self, layers: list[nn.Linear]) -> None:
        self.layers = layers
        self._of_thread = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        return {"layers": self.layers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["layers"])  # type: ignore[misc]

    def result(self, layer: nn.Linear, x: Tensor) -> Tensor | None:
        """What the layer makes of x; None if it is to compute that by itself."""
        waiting: _Waiting | None = getattr(self._of_thread, "waiting", None)
        if waiting is not None:
            found = waiting.take(layer, x)
            if not waiting.results:
                self._of_thread.waiting = None
            if found is not None:
                return found
            self._of_thread.waiting = None
            if waiting.results:
                self._part()
                return None
        if not _gains(x) or x.is_inference() or not layer_is_joined(layer):
            return None
        joined = joined_linear(tuple(self.layers), x)
        if joined is None:
            return None
        sizes = [each.out_features for each in self.layers]
        parts = torch.split(joined, sizes, -1)
        results = {
            id(each): part.contiguous()
            for each, part in zip(self.layers, parts, strict=True)
        }
        made: Tensor = results.pop(id(layer))
        self._of_thread.waiting = _Waiting(
            weakref.ref(x), x._version, _state(self.layers, x), results, self
        )
        return made

    def _part(self) -> None:
        for each in self.layers:
            each.__dict__.pop(_NAME, None)


@dataclass(slots=True)
class _Waiting:
    """Results that are not taken yet, by the layer."""

    x: "weakref.ref[Tensor]"
    version: int
    state: tuple[Any, ...]
    results: dict[int, Tensor]
    of: LayersOfOneInput

    def take(self, layer: nn.Linear, x: Tensor) -> Tensor | None:
        if self.x() is not x or self.version != x._version:
            return None
        if self.state != _state(self.of.layers, x):
            return None
        return self.results.pop(id(layer), None)


def _state(layers: list[nn.Linear], x: Tensor) -> tuple[Any, ...]:
    """What the results depend on, but for the input."""
    of_layers = [
        (id(each), each._version)
        for layer in layers
        for each in (layer.weight, layer.bias)
        if each is not None
    ]
    return _computed_in(x), *of_layers


def _computed_in(x: Tensor) -> torch.dtype:
    kind = x.device.type
    return (
        torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype
    )


def _gains(x: Tensor) -> bool:
    return (
        _computed_in(x).itemsize == 2
        and x.dim() > 0
        and 0 < x.numel() <= _MOST_ROWS * x.shape[-1]
    )


def layer_is_joined(layer: nn.Module) -> bool:
    return _NAME in layer.__dict__


def joined_result(layer: nn.Linear, x: Tensor) -> Tensor | None:
    """The result of a layer, if it is computed together with others."""
    layers: LayersOfOneInput | None = layer.__dict__.get(_NAME)
    return None if layers is None else layers.result(layer, x)


def join_linears(module: nn.Module, taken: set[str]) -> list[list[str]]:
    """Joins the linear layers among a module's children that its forward calls with one
    variable; but those of the names `taken`. Returns the names of each product."""
    made = []
    for names in _called_with_one_variable(type(module)):
        layers = {name: getattr(module, name, None) for name in names}
        joined = {
            name: each
            for name, each in layers.items()
            if type(each) is nn.Linear
            and "forward" not in vars(each)
            and name not in taken
            and name in module._modules
            and not layer_is_joined(each)
        }
        kinds = {
            (each.in_features, each.weight.dtype, each.weight.device)
            for each in joined.values()
        }
        if len(set(joined.values())) == len(joined) > 1 == len(kinds):
            together = LayersOfOneInput(list(joined.values()))
            for each in joined.values():
                each.__dict__[_NAME] = together
            made.append(list(joined))
    return made


def _called_with_one_variable(kind: type[nn.Module]) -> list[list[str]]:
    """The names of children that the forward calls as `self.name(variable)`, by the
    variable between two assignments to it."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(kind.forward)))
        function = ast.parse(source).body[0]
    except (OSError, TypeError, SyntaxError):
        return []
    if not isinstance(function, ast.FunctionDef) or not function.args.args:
        return []
    calls = _Calls(function.args.args[0].arg)
    for statement in function.body:
        calls.visit(statement)
    return [names for names in calls.names.values() if len(names) > 1]


class _Calls(ast.NodeVisitor):
    def __init__(self, own: str) -> None:
        self.own = own
        self.names: dict[tuple[str, int], list[str]] = {}
        self._assigned: dict[str, int] = {}

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)  # before its targets
        for each in node.targets:
            self.visit(each)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._assigned[node.id] = self._assigned.get(node.id, 0) + 1

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = node.func
        if (
            isinstance(called, ast.Attribute)
            and isinstance(called.value, ast.Name)
            and called.value.id == self.own
            and len(node.args) == 1
            and isinstance(node.args[0], ast.Name)
            and not node.keywords
        ):
            name = node.args[0].id
            key = name, self._assigned.get(name, 0)
            self.names.setdefault(key, []).append(called.attr)
