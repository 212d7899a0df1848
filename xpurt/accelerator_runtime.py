"""The functions that PyTorch calls on ``torch.<name>`` of an accelerator."""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import torch

Device = torch.device | str | int | None


class AcceleratorRuntime(Protocol):
    """A runtime: a module, or an object, with these functions. mypy checks it, and
    `register_runtime` does when it is called. The first line of each says what to do."""

    def is_available(self) -> bool:
        """return whether there is a device"""
        ...

    def device_count(self) -> int:
        """return the number of devices"""
        ...

    def current_device(self) -> int:
        """return the index of this thread's device"""
        ...

    def set_device(self, device: Device) -> None:
        """make it this thread's device"""
        ...

    def synchronize(self, device: Device = None) -> None:
        """wait for all work on the device, or do nothing if none is queued"""
        ...

    def current_stream(self, device: Device = None) -> Any:
        """return this thread's stream, a torch.Stream"""
        ...

    def stream(self, stream: Any) -> AbstractContextManager[Any]:
        """return a context manager in which `stream` is current; None changes nothing"""
        ...

    def manual_seed_all(self, seed: int) -> None:
        """seed the generator of every device"""
        ...

    def _is_in_bad_fork(self) -> bool:
        """return False, or True in a forked process that can't use the device"""
        ...

    def _lazy_init(self) -> None:
        """start the device at its first use, or do nothing"""
        ...


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    name: value
    for name, value in vars(AcceleratorRuntime).items()
    if inspect.isfunction(value) and value.__doc__ and value.__module__ == __name__
}
# The names of the functions.
REQUIRED: Final = tuple(_FUNCTIONS)


def faults_of(runtime: object) -> list[str]:
    """What keeps `runtime` from being an AcceleratorRuntime, and what to do, a line per
    function. Empty if it is one."""
    return [
        fault
        for name in REQUIRED
        if (fault := _fault(name, getattr(runtime, name, None)))
    ]


def _fault(name: str, found: object) -> str | None:
    arguments = _arguments(name)
    mend = f"define {name}({_listed(arguments)}) to {_FUNCTIONS[name].__doc__}"
    if found is None:
        return f"{name} is missing: {mend}"
    if not callable(found):
        return f"{name} is {found!r}, which can't be called: {mend}"
    required = [each for each in arguments if each.default is each.empty]
    try:
        signature = inspect.signature(found)
    except ValueError:  # a function of C may have none
        return None
    try:
        signature.bind(*required)
    except TypeError as error:
        call = f"{name}({_listed(required)})"
        return f"{name}{signature} can't be called as {call}, {error}: {mend}"
    return None


def _arguments(name: str) -> list[inspect.Parameter]:
    parameters = inspect.signature(_FUNCTIONS[name]).parameters.values()
    return [
        each.replace(annotation=each.empty)
        for each in parameters
        if each.name != "self"
    ]


def _listed(arguments: list[inspect.Parameter]) -> str:
    return ", ".join(str(each) for each in arguments)
