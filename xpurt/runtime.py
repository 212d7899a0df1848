"""Registering a module as PyTorch's runtime for a device type, as ``torch.<name>``."""

import sys
import threading
from types import ModuleType, TracebackType
from typing import Any, Final

import torch

from xpurt.accelerator_runtime import REQUIRED, AcceleratorRuntime, faults_of
from xpurt.errors import nearest

__all__ = [
    "REQUIRED",
    "AcceleratorRuntime",
    "Registration",
    "add_to_torch",
    "register_runtime",
]

# The device types that torch.device() accepts; PyTorch lists them only in an error.
_DEVICE_TYPES: Final = (
    *("cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve"),
    *("fpga", "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia"),
    "privateuseone",
)

# The layout that proposals for PyTorch write as torch.mkldnn.
if not hasattr(torch, "mkldnn"):
    torch.mkldnn = torch._mkldnn  # type: ignore[attr-defined]

# Stands for an attribute that was not there.
_ABSENT: Final = object()

_lock = threading.RLock()
# Per device type the registrations that are in force, the latest last.
_registered: dict[str, list["Registration"]] = {}


class Registration:
    """A registration in force; `remove`, or leaving a ``with``, undoes it."""

    def __init__(self, name: str, module: Any, before: "_Runtime") -> None:
        self.name = name
        self.module = module
        self._before = before

    def remove(self) -> None:
        """Restores what ``torch.<name>`` was before. A second call does nothing.

        A later registration that is in force stays. When it is removed, it restores
        what was there before this one.
        """
        with _lock:
            stack = _registered.get(self.name, [])
            if self not in stack:
                return
            position = stack.index(self)
            if position == len(stack) - 1:
                self._before.restore()
            else:
                stack[position + 1]._before = self._before
            stack.remove(self)

    def __enter__(self) -> "Registration":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<Registration of {self.module!r} as torch.{self.name}>"


class _Runtime:
    """The present ``torch.<name>``: the attribute and the imported modules."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.attribute = vars(torch).get(name, _ABSENT)
        self.modules = _modules_of(name)

    def restore(self) -> None:
        for path in _modules_of(self.name):
            del sys.modules[path]
        sys.modules.update(self.modules)
        if self.attribute is not _ABSENT:
            setattr(torch, self.name, self.attribute)
        elif self.name in vars(torch):
            delattr(torch, self.name)
        _forget_found_modules()


def register_runtime(name: str, module: Any) -> Registration:
    """Makes `module` the runtime ``torch.<name>`` of a device type.

    name: any device type that PyTorch knows: "xpu", "ipu", "hpu", ..., or the name
        given to PrivateUse1.
    module: a module or an object with the functions of
        `xpurt.runtime.AcceleratorRuntime`, which PyTorch calls: ``is_available``,
        ``device_count``, ``current_device``, ``set_device``, ``synchronize``,
        ``current_stream``, ``stream``, ``manual_seed_all``, ``_is_in_bad_fork`` and
        ``_lazy_init``. `xpurt.prototype_device(..., runtime=module)` fills in what a
        module lacks.

    From then on ``torch.<name>``, ``import torch.<name>`` and
    ``torch.get_device_module(name)`` are `module`. Its submodules become
    ``torch.<name>.*``; those of the previous runtime are no longer found there.

    Returns a handle; its ``remove()`` restores what was there. It is a context manager,
    too. Raises ValueError on an unknown device type, and TypeError on a module whose
    functions are missing, or can't be called as PyTorch does, with what to define.
    """
    _check_name(name)
    _check_module(name, module)
    with _lock:
        before = _Runtime(name)
        parts = _parts(name, module)
        for path in before.modules:
            del sys.modules[path]
        sys.modules[f"torch.{name}"] = module
        sys.modules.update(parts)
        setattr(torch, name, module)
        _forget_found_modules()
        registration = Registration(name, module, before)
        _registered.setdefault(name, []).append(registration)
        return registration


def add_to_torch() -> None:
    """Makes ``torch.register_runtime`` this package's `register_runtime`, for programs that
    look for it there. Nothing else does so; a second call does nothing.

    Raises RuntimeError if PyTorch has a function of that name.
    """
    found = vars(torch).get("register_runtime", register_runtime)
    if found is not register_runtime:
        raise RuntimeError(
            f"torch.register_runtime is {found!r} already. Call xpurt.register_runtime."
        )
    setattr(torch, "register_runtime", register_runtime)  # noqa: B010


def _forget_found_modules() -> None:
    """Clears the cache of `torch.get_device_module`."""
    torch.get_device_module.cache_clear()


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise TypeError(f"a device type is a string, not {type(name).__name__}")
    known = (*_DEVICE_TYPES, torch._C._get_privateuse1_backend_name())
    if name in known:
        return
    near = nearest(name, known)
    hint = f'; did you mean "{near}"?' if near else "."
    raise ValueError(
        f'PyTorch knows no device type "{name}"{hint} It knows '
        f"{', '.join(dict.fromkeys(known))}."
    )


def _check_module(name: str, module: Any) -> None:
    faults = faults_of(module)
    if faults:
        shown = getattr(module, "__name__", None) or repr(module)
        listed = "".join(f"\n- {fault}" for fault in faults)
        raise TypeError(
            f"{shown} cannot be the runtime torch.{name}, as PyTorch calls functions "
            f"that it does not have:{listed}"
        )


def _parts(name: str, module: Any) -> dict[str, ModuleType]:
    """The imported submodules of `module`, by their paths in torch."""
    own = getattr(module, "__name__", None)
    if not isinstance(module, ModuleType) or own is None:
        return {}
    # A runtime that is made under torch's own name has its submodules there already.
    # A submodule that is no attribute of it is left over from another runtime.
    return {
        f"torch.{name}" + path.removeprefix(own): part
        for path, part in list(sys.modules.items())
        if path.startswith(f"{own}.") and _holds(module, path.removeprefix(own), part)
    }


def _holds(module: ModuleType, path: str, part: ModuleType) -> bool:
    found: object = module
    for step in path.strip(".").split("."):
        found = getattr(found, step, None)
    return found is part


def _modules_of(name: str) -> dict[str, ModuleType]:
    root = f"torch.{name}"
    return {
        path: module
        for path, module in list(sys.modules.items())
        if path == root or path.startswith(f"{root}.")
    }
