"""Imports PyTorch's ``torch.xpu`` once more, over xpurt, and puts it in place.

Note [Torch's own layer]
~~~~~~~~~~~~~~~~~~~~~~~~
``import torch`` has imported ``torch.xpu`` as a stub, since names were missing in
``torch._C``. With the names set, the same source gives the real module. It is a new
module object: code that took a function out of the stub keeps the stub's function. In
PyTorch only ``torch._dynamo`` does so. Either xpurt is imported first, or the functions
in `torch._dynamo` are replaced (see `_tell_dynamo`).
"""

import atexit
import importlib
import sys
import traceback
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, Protocol

import torch

from xpurt import _C
from xpurt.mapping import check_device_index, count_ordinals, on_change
from xpurt.startup import first_use
from xpurt.xpu import (
    absence,
    backward,
    cuda_build,
    names,
    processes,
    profiles,
    telemetry,
)
from xpurt.xpu.properties import device_properties


class Registration(Protocol):
    """What `xpurt.runtime.register_runtime` returns."""

    def remove(self) -> None: ...


Register = Callable[[str, ModuleType], Registration]

_ABSENT: Final = object()
_ROOT: Final = "torch.xpu"


class _Generators(tuple[torch.Generator, ...]):
    """The default generator of each device. A larger index raises with the reason."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and index >= len(self):
            check_device_index(index)
        return super().__getitem__(index)


class _Installed:
    """The installed runtime, and what was there before it."""

    def __init__(self, register: Register) -> None:
        self.names_before: dict[str, Any] = {}
        self.module, parts = self._import_layer()
        self._change()
        self.version_before = torch.version.xpu
        stub = torch.xpu
        self.registration = register("xpu", self.module)
        sys.modules.update(parts)
        self.undo = [on_change(self._follow_mapping), processes.share_storages()]
        self.undo.append(absence.answer_none())
        self.undo.append(backward.use_calling_thread())
        if _C.is_cuda_build():
            self.undo.append(cuda_build.heed_xpu_when_tracing())
        else:
            torch.version.xpu = _C.sycl_version
            self.undo.append(profiles.name_xpu())
            first_use.miss_no_triton()
        first_use.leave_cpu_programs()
        _tell_dynamo(stub, self.module)

    def remove(self) -> None:
        for undo in self.undo:
            undo()
        _tell_dynamo(self.module, None)
        self.registration.remove()
        torch.version.xpu = self.version_before
        self._restore_names()

    def _import_layer(self) -> tuple[ModuleType, dict[str, ModuleType]]:
        """The module, and its submodules by name. Leaves the stub in place."""
        for name, value in names.names(self._initialize).items():
            self.names_before[name] = vars(torch._C).get(name, _ABSENT)
            setattr(torch._C, name, value)
        stub = torch.xpu
        stubs = _take_modules()
        try:
            module = importlib.import_module(_ROOT)
        except BaseException:
            self._restore_names()
            raise
        finally:
            made = _take_modules()
            sys.modules.update(stubs)
            torch.xpu = stub
        made.pop(_ROOT)
        return module, made

    def _restore_names(self) -> None:
        for name, value in self.names_before.items():
            if value is _ABSENT:
                delattr(torch._C, name)
            else:
                setattr(torch._C, name, value)

    def _change(self) -> None:
        """Replaces the functions that differ from PyTorch's."""
        module = vars(self.module)
        # PyTorch's would count Level Zero's GPUs, and keep the number.
        module["device_count"] = module["random"].device_count = _device_count
        # Without its cache, which would outlive a mapping.
        module["get_device_capability"] = module["get_device_capability"].__wrapped__
        # PyTorch hashes by the queue's address. Reading the address hands the queue
        # out, and the stream would never count as idle again.
        module["Stream"].__hash__ = torch.Stream.__hash__
        module.update(telemetry.DIFFERENCES)
        if _C.is_cuda_build():
            module["_is_compiled"] = cuda_build.is_compiled

    def _initialize(self) -> None:
        """Stands for ``torch._C._xpu_init``, which runs once, at the first use."""
        _C.init()
        vars(self.module)["_get_device_properties"] = device_properties
        self._set_generators()

    def _set_generators(self) -> None:
        vars(self.module)["default_generators"] = _Generators(
            _C.default_generator(index) for index in range(_C.device_count())
        )

    def _follow_mapping(self) -> None:
        # The stream belonged to the mapping at the first capture.
        vars(self.module)["graph"].default_capture_stream = None
        if self.module.is_initialized():
            self._set_generators()
            # In this thread only; other threads check at their next use of the device.
            if _C.current_device() >= _C.device_count():
                _C.set_device(0)


_installed: _Installed | None = None


def install(register: Register) -> None:
    """Makes PyTorch's layer over xpurt the runtime ``torch.xpu``.

    register: `xpurt.runtime.register_runtime`.

    Does nothing if it is in place. Touches no device.
    """
    global _installed
    if _installed is None:
        _installed = _Installed(register)
        atexit.register(_finish)


def uninstall() -> None:
    """Restores the stub that PyTorch has without xpurt."""
    global _installed
    if _installed is not None:
        _installed.remove()
        _installed = None
        atexit.unregister(_finish)


def _device_count() -> int:
    """The number of xpu devices under the mapping; 0 if there can be none."""
    return _C.device_count() or count_ordinals()


def _take_modules() -> dict[str, ModuleType]:
    """Removes ``torch.xpu`` and its submodules from `sys.modules`. Returns them."""
    found = [m for m in sys.modules if m == _ROOT or m.startswith(f"{_ROOT}.")]
    return {name: sys.modules.pop(name) for name in found}


def _tell_dynamo(before: ModuleType, after: ModuleType | None) -> None:
    """Replaces the functions that ``torch._dynamo`` imported from ``torch.xpu``."""
    dynamo = sys.modules.get("torch._dynamo.device_interface")
    if dynamo is None:
        return
    after = after if after is not None else torch.xpu
    interface = dynamo.XpuInterface
    for name, value in list(vars(interface).items()):
        taken = value.__func__ if isinstance(value, staticmethod) else value
        known = getattr(taken, "__name__", None)
        if known is None or vars(before).get(known) is not taken:
            continue
        new = vars(after)[known]
        setattr(
            interface,
            name,
            staticmethod(new) if isinstance(value, staticmethod) else new,
        )
    raw_stream: Any = vars(torch._C).get("_xpu_getCurrentRawStream")
    vars(dynamo)["get_xpu_stream"] = raw_stream
    interface.get_raw_stream = staticmethod(raw_stream)


def _finish() -> None:
    """Waits for all queued work. Prints an error that no synchronization raised."""
    _C.drain_autograd_threads()
    try:
        _C.synchronize_all()
    except RuntimeError:
        traceback.print_exc()
