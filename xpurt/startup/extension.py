"""Loads the extension xpurt._C into the PyTorch it was built for, or gives a reason."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import torch

from xpurt.startup import driver, first_use, replaced_kernels


def refusal() -> str | None:
    """The reason why this PyTorch cannot load the extension; None if it can."""
    from xpurt import _built_for

    found = torch.__version__.partition("+")[0]
    if found != _built_for.TORCH:
        return (
            f"xpurt was built for PyTorch {_built_for.TORCH}; found {found}. Install "
            f"torch=={_built_for.TORCH}, or build xpurt again: pip install "
            "--force-reinstall --no-deps --no-binary xpurt xpurt"
        )
    if torch._C._GLIBCXX_USE_CXX11_ABI != _built_for.CXX11_ABI:
        return (
            f"xpurt was built with _GLIBCXX_USE_CXX11_ABI={_built_for.CXX11_ABI:d}; "
            f"this PyTorch has {torch._C._GLIBCXX_USE_CXX11_ABI:d}. Build xpurt again "
            "with this PyTorch installed."
        )
    return None


def has_own_xpu() -> bool:
    """Whether this PyTorch was built with its own XPU support."""
    return bool(torch._C._has_xpu) and "xpurt._C" not in sys.modules


class Absent(ModuleType):
    """Stands for the extension in a PyTorch where it must not be registered."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.reason = reason

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"xpurt is inactive: {self.reason}")


class Room(ModuleType):
    """Stands for an extension module that is loaded when something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if _inactive_reason is not None:
            raise RuntimeError(f"xpurt is inactive: {_inactive_reason}")
        module = import_module(self.__name__)
        self.__dict__.update(vars(module))
        return getattr(module, name)


OWN_XPU = (
    "this PyTorch has XPU compiled in, and its own xpu device is left alone. Use it "
    "as it is, or install a PyTorch build without XPU."
)


_inactive_reason: str | None = None


def inactive_reason() -> str | None:
    """The reason why xpurt gave this PyTorch no xpu device; None if it did."""
    return _inactive_reason


def load() -> bool:
    """Loads xpurt._C. Returns False if an object with the reason stands for it.

    Raises:
        ImportError: the extension was built for another PyTorch, or one of the
            libraries that it needs is missing.
    """
    first_use.begin()
    sys.modules["xpurt"]._layouts = Room("xpurt._layouts")  # type: ignore[attr-defined]
    sys.modules["xpurt"]._lazy = Room("xpurt._lazy")  # type: ignore[attr-defined]
    sys.modules["xpurt"]._prototype = Room("xpurt._prototype")  # type: ignore[attr-defined]
    if has_own_xpu():
        _leave_out(OWN_XPU)
        return False
    try:
        _load()
    except ImportError as error:
        if not _doctor_was_called():
            raise
        _leave_out(str(error))
        return False
    return True


def _leave_out(reason: str) -> None:
    global _inactive_reason
    _inactive_reason = reason
    absent = Absent("xpurt._C", reason)
    sys.modules["xpurt._C"] = sys.modules["xpurt"]._C = absent  # type: ignore[attr-defined]


def _doctor_was_called() -> bool:
    """Whether this is `python -m xpurt doctor`, or `xpurt doctor`. The command imports
    the package, and has to work if the package cannot be imported."""
    program, *arguments = sys.argv or [""]
    if program == "-m":  # the value of argv[0] while the package is imported
        named = not {"xpurt", "-mxpurt"}.isdisjoint(sys.orig_argv)
    else:
        named = Path(program).name == "xpurt"
    return named and arguments[:1] == ["doctor"]


def _load() -> None:
    reason = refusal()
    if reason is not None:
        raise ImportError(reason)
    missing = driver.load_libraries()
    registered = replaced_kernels.registered()
    try:
        import_module("xpurt._C")
    except ImportError as error:
        if not missing:
            raise
        raise ImportError(
            f"{error}. Not found beside the SYCL runtime: {', '.join(missing)}. "
            "Install xpurt's dependencies: pip install xpurt"
        ) from error
    first_use.register_fallbacks(sys.modules["xpurt._C"])
    replaced_kernels.warn_of_replaced(registered)
