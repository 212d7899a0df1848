"""The forward of a module as fused graphs that guards protect.

Note [Captured forwards]
~~~~~~~~~~~~~~~~~~~~~~~~
The graph of a forward, with the forwards of all modules that it calls, comes from
Dynamo, as that of `torch.compile`. Dynamo notes what the graph depends on: attributes,
containers, classes, hooks, global variables, types, layouts and sizes. These guards are
checked in each call, in C++. A call that fails one is captured anew. What can't be part
of a graph, as a decision by values, is run as it is written, between two graphs.

Parameters are inputs of the graph, so new values are seen.
"""

import itertools
import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, Final, cast
from weakref import ref

from torch import nn
from torch.fx import GraphModule

from xpurt.optimization import measured_forms
from xpurt.optimization.fusions import fuse

# Forms of one code; further ones run as they are written. PyTorch's 8 are few for a
# model that is called with and without each optional argument.
_MOST_FORMS: Final = 16

# Settings of Dynamo while it captures. Hooks are guarded, calls of NumPy stay NumPy's,
# and what Dynamo fails at runs as it is written, with a warning.
_SETTINGS: Final[dict[str, Any]] = {
    "skip_nnmodule_hook_guards": False,
    "trace_numpy": False,
    "suppress_errors": True,
}

Forward = Callable[..., Any]


class CapturedForward:
    """`call`: run as fused graphs."""

    def __init__(
        self,
        module: nn.Module,
        run: Forward,
        note: Callable[[list[tuple[str, str]]], object],
    ) -> None:
        """run: calls the forward of a module as the user wrote it. note: is told the
        layers of each graph, and what they were fused to."""
        self._module, self._note = ref(module), note
        self.call = self._captured(_with_code_of_its_own(run))

    def _captured(self, run: Forward) -> Forward:
        import torch._dynamo

        _leave_choices()
        context: Any = torch._dynamo.optimize(
            self._fused, recompile_limit=_MOST_FORMS, isolate_recompiles=True
        )
        if hasattr(context, "callback"):  # not if Dynamo is disabled
            context.callback = _WithSettings(context.callback)
        return cast(Forward, context(run))

    def _fused(self, graph: GraphModule, inputs: list[Any]) -> Forward:
        """Called by Dynamo with each graph."""
        module = self._module()
        assert module is not None
        if not _is_sharded(module):
            self._note(fuse(graph, inputs, module))
        return _function(graph)


@cache
def _leave_choices() -> None:
    """Between two graphs a child may choose its form, which is none of a graph's."""
    from torch._dynamo import trace_rules

    trace_rules.add(measured_forms.__name__)


class _WithSettings:
    """What Dynamo calls to compile a frame, under the settings."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._torchdynamo_orig_backend = inner._torchdynamo_orig_backend

    def __call__(self, *args: Any) -> Any:
        from torch._dynamo import config

        with config.patch(_SETTINGS):
            return self._inner(*args)


_numbers: Final = itertools.count()


def _with_code_of_its_own(run: Forward) -> Forward:
    """Dynamo keeps graphs beside the code, and drops them with it. By its name it
    remembers which numbers changed between calls."""
    assert isinstance(run, FunctionType)
    name = f"{run.__name__.strip('_')}_{next(_numbers)}"
    code = run.__code__.replace(co_name=name)
    return FunctionType(code, run.__globals__, run.__name__, None, run.__closure__)


def _is_sharded(module: nn.Module) -> bool:
    """Whether the parameters are gathered anew in each call."""
    if "torch.distributed.fsdp" not in sys.modules:
        return False
    from torch.distributed.fsdp import FSDPModule

    return any(isinstance(each, FSDPModule) for each in module.modules())


def _function(graph: GraphModule) -> Forward:
    code = graph.graph.python_code("self")
    scope = dict(code.globals)
    exec(code.src, scope)
    return cast(Forward, scope["forward"].__get__(graph))
