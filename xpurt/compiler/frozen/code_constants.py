"""Constants of compiled code, which are freed with it.

Note [Modules of generated code]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Inductor imports the Python code of a graph as a module, and the constants of the graph
are attributes of that module. `sys.modules` and a list of Inductor keep the module until
the process ends. For CPU tensors that is memory. For xpu tensors it is also the mapping,
which can't be changed while a tensor is alive. So a module with tensors leaves both
lists. Its functions keep its dictionary, and the compiled graph keeps its functions.
"""

import sys
from typing import Any

import torch


def free_with_code(function: Any) -> None:
    """Makes the constants of generated code live as long as `function`, its entry."""
    attributes = getattr(function, "__globals__", None)
    if attributes is None or not _has_tensors(attributes):
        return
    from torch._inductor.codecache import PyCodeCache

    modules = PyCodeCache.modules
    modules[:] = [each for each in modules if vars(each) is not attributes]
    name = attributes.get("__name__")
    found = sys.modules.get(name)
    if found is not None and vars(found) is attributes:
        del sys.modules[name]


def _has_tensors(attributes: dict[str, Any]) -> bool:
    return any(isinstance(each, torch.Tensor) for each in attributes.values())
