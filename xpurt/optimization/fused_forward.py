"""The fused form of a module's own forward, and when it holds."""

from collections.abc import Callable
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from torch import Tensor, nn
from torch.fx import Graph

from xpurt.optimization.fusions import fuse
from xpurt.optimization.own_forward import NotTraceable, trace

ORIGINAL: Final = "_original_forward"  # the name of the forward that the user wrote

_NUMBERS: Final = (bool, int, float, str, type(None))


class FusedForward:
    """It holds for the attributes and the children that the module had when it was
    traced. `rows`: the fused layers, and what was fused. `members`: names of the modules
    that it no longer calls."""

    def __init__(
        self, module: nn.Module, kind_of: Callable[[nn.Module], type[nn.Module]]
    ) -> None:
        """Raises NotTraceable."""
        graph = trace(module, ORIGINAL)
        called = {str(n.target) for n in graph.nodes if n.op == "call_module"}
        fused = fuse(module, graph, kind_of)
        self.rows, self.members = fused.rows, fused.members
        self.run = _function(graph)
        self._inputs = sum(node.op == "placeholder" for node in graph.nodes)
        self._members = [module.get_submodule(name) for name in fused.members]
        self._attributes = _attributes(module)
        self._children = tuple(module._modules.values())
        self._containers = [
            (each, tuple(each._modules.values()))
            for each in _containers(module, called)
        ]

    def is_of(self, module: nn.Module) -> bool:
        """Whether the module is as it was when it was traced."""
        return (
            _same(self._children, module)
            and all(_same(children, each) for each, children in self._containers)
            and self._attributes == _attributes(module)
        )

    def takes(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> bool:
        """Whether the call is of the traced kind, and no hook watches a member."""
        return (
            not kwargs
            and not module.training
            and len(args) == self._inputs
            and all(type(x) is Tensor for x in args)
            and not any(
                each.training or each._forward_hooks or each._forward_pre_hooks
                for each in self._members
            )
        )


# None: the module can't be traced.
_known: WeakKeyDictionary[nn.Module, FusedForward | None] = WeakKeyDictionary()


def fused_forward_of(
    module: nn.Module, kind_of: Callable[[nn.Module], type[nn.Module]]
) -> FusedForward | None:
    """Made at the first use, also of a copy, and again after a change of the module;
    None if the module can't be traced now."""
    found = _known.get(module)
    if found is not None and found.is_of(module):
        return found
    if found is None and module in _known:
        return None
    try:
        made = FusedForward(module, kind_of)
    except NotTraceable:
        made = None
    _known[module] = made
    return made


def forget_fused_forward(module: nn.Module) -> None:
    _known.pop(module, None)


def _function(graph: Graph) -> Callable[..., Any]:
    code = graph.python_code("self")
    scope = dict(code.globals)
    exec(code.src, scope)
    return cast(Callable[..., Any], scope["forward"])


def _attributes(module: nn.Module) -> dict[str, Any]:
    """Those that may decide what the forward does."""
    return {
        name: list(each) if isinstance(each, list) else each
        for name, each in module.__dict__.items()
        if name[0] != "_" and name != "training" and _is_plain(each)
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(_is_plain(each) for each in value)
    return isinstance(value, _NUMBERS)


def _containers(module: nn.Module, called: set[str]) -> list[nn.Module]:
    """The modules between this one and those that it calls, as a ModuleList."""
    names = {
        name.rsplit(".", depth)[0]
        for name in called
        for depth in range(1, name.count(".") + 1)
    }
    return [module.get_submodule(name) for name in names]


def _same(children: tuple[nn.Module | None, ...], module: nn.Module) -> bool:
    now = module._modules.values()
    return len(children) == len(now) and all(
        one is other for one, other in zip(children, now, strict=True)
    )
