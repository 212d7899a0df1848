"""Parameters that several modules share stay shared when a module moves.

PyTorch gives a parameter other data when its module moves, but for device types whose
tensors it takes for another kind it makes a new parameter, for each module that has it: a
tied weight would be two weights from then on.
"""

import functools
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

_within = threading.local()


@functools.cache
def keep() -> None:
    """From now on `Module.to` and its kin keep them, on all device types."""
    before: Callable[..., nn.Module] = nn.Module._apply

    @functools.wraps(before)
    def _apply(
        module: nn.Module, fn: Callable[[Tensor], Tensor], recurse: bool = True
    ) -> nn.Module:
        if getattr(_within, "a_module", False):  # of one that moves
            return before(module, fn, recurse)
        owners = _owners_of_shared(module)
        _within.a_module = True
        try:
            moved = before(module, fn, recurse)
        finally:
            _within.a_module = False
        for (first, first_name), *others in owners:
            for owner, name in others:
                owner._parameters[name] = first._parameters[first_name]
        return moved

    setattr(nn.Module, "_apply", _apply)  # noqa: B010


def _owners_of_shared(module: nn.Module) -> list[list[tuple[nn.Module, str]]]:
    owners: dict[Any, list[tuple[nn.Module, str]]] = defaultdict(list)
    for each in module.modules():
        for name, parameter in each._parameters.items():
            if parameter is not None:
                owners[id(parameter)].append((each, name))
    return [each for each in owners.values() if len(each) > 1]
