"""What stands for xpu until it is used, in place of xpurt.

Note [First use in Python]
~~~~~~~~~~~~~~~~~~~~~~~~~~
xpurt and the libraries of SYCL and oneDNN take a quarter of a second to load. A program
on CPU tensors needs none of it, so `import torch` loads this module alone. What such a
program asks about xpu is answered here, for example by ``torch.manual_seed``. Anything
else is the first use of xpu: it imports xpurt, and then goes on as if that had been
imported by `import torch`. It is noticed

- by an attribute of ``torch.xpu``, which all of PyTorch's Python code reads, and C++
  before it makes a tensor on xpu for Python;
- by C++'s hooks, guard, allocators and ops: csrc/first_use;
- at the import of a module that xpurt changes or whose functions of ``torch.xpu``
  would stay those of a build without it, before it is executed;
- by the functions of `_intercept_functions`, which concern xpu without any of these.

xpurt_autoload.py loads this module by its path: an import would import the package.
Importing xpurt begins with `begin`, when it loads the extension, and ends with `finish`. Other threads that use xpu
meanwhile wait for the end.
"""

import functools
import gc
import importlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any, Final

import torch

ROOT: Final = "torch.xpu"
_torch: Any = torch  # it has few types here
_has_cuda = bool(torch.version.cuda or torch.version.hip)

# Modules before whose import xpurt is loaded. Those of PyTorch's compiler take functions
# from torch.xpu; the others are in the list of xpurt.integrations.after_import.
LOADS_XPURT: Final = frozenset(
    {
        "torch._dynamo",
        "torch._inductor",
        "torch._higher_order_ops.associative_scan",
        "torch.distributed.distributed_c10d",
        "torch.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook",
        "torch.distributed.fsdp._fully_shard._fsdp_collectives",
        "torch.distributed.tensor",
        "torch.export.pt2_archive._package",
        "lightning.pytorch.trainer.connectors.accelerator_connector",
        "lightning.fabric.connector",
        "pytorch_lightning.trainer.connectors.accelerator_connector",
        "lightning_fabric.connector",
        "torchaudio._extension",
        "timm.utils.distributed",
    }
)

Report = Callable[[Exception], None]

_USM_INTERFACE: Final = "__sycl_usm_array_interface__"
_ONE_API: Final = 14  # kDLOneAPI
_HOST_BACKENDS: Final = frozenset({"gloo", "mpi", "nccl", "ucc", "fake"})

_native: Any = None  # xpurt._first_use, if it was installed
_report: Report | None = None  # set while this stands for xpu, and after
_undo: list[Callable[[], object]] = []
_loading_thread: int | None = None
_loaded = False
_failed = False
_seed: int | None = None


def install(native: Any, report: Report) -> None:
    """Makes what stands for xpu. Called by xpurt_autoload at the end of `import torch`.

    native: the module xpurt._first_use. report: gets the error of a load that fails.
    """
    global _native, _report
    _native, _report = native, report
    native.install(load)
    _undo.append(native.step_aside)
    if not _has_cuda:  # some of PyTorch refuses a version of both
        torch.version.xpu = native.sycl_version
        _undo.append(lambda: setattr(torch.version, "xpu", None))
        miss_no_triton()
    for name, module in list(sys.modules.items()):
        if name == ROOT or name.startswith(f"{ROOT}."):
            module.__class__ = _Stub
    sys.meta_path.insert(0, _finder)
    _undo.append(lambda: sys.meta_path.remove(_finder))
    _follow_ops()
    _intercept_functions()
    leave_cpu_programs()


def load() -> bool:
    """Imports xpurt. False if that failed, or is underway in the calling thread."""
    global _failed
    if _loaded:
        return True
    if _failed or _loading_thread == threading.get_ident() or _torch_is_loading():
        return False
    try:
        # If another thread imports it, this waits. No mode of the caller may see what
        # the import calls.
        with (
            without_collections(),
            torch._C._DisableTorchDispatch(),
            torch._C.DisableTorchFunction(),
        ):
            importlib.import_module("xpurt")
    except Exception as error:
        _failed = True
        if _report is not None:
            _report(error)
    return _loaded


@contextmanager
def without_collections() -> Iterator[None]:
    """Python's garbage stays meanwhile. What makes many objects starts a collection that
    scans all of PyTorch: a tenth of a second."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _torch_is_loading() -> bool:
    """Whether `import torch` is underway: what it does after this was installed gets the
    answers of a build without xpu, as what it did before."""
    return bool(getattr(torch.__spec__, "_initializing", False))


def begin() -> None:
    """Called by `import xpurt` before it changes anything: PyTorch is as without this module, apart from
    ``torch.xpu`` for other threads."""
    global _loading_thread
    _loading_thread = threading.get_ident()
    while _undo:
        _undo.pop()()


def register_fallbacks(extension: Any) -> None:
    """Makes ops on xpu run in the extension, which was loaded just now. What this module
    has registered for all ops goes there; it is not registered anew."""
    if _native is None:
        extension.register_fallbacks()
    else:
        _native.call_fallbacks(extension.fallbacks())


def finish() -> None:
    """The last step of `import xpurt`."""
    global _loaded, _loading_thread
    _loaded = True
    _loading_thread = None
    if _seed is not None:
        _torch.xpu.manual_seed_all(_seed)


class _Stub(ModuleType):
    """PyTorch's stub of ``torch.xpu``, or a submodule of it: an attribute loads xpurt,
    and is one of the real module."""

    def __getattribute__(self, name: str) -> Any:
        plain = super().__getattribute__
        if name.startswith("__"):
            return plain(name)
        path = plain("__name__")
        if path == ROOT and name in _ANSWERS and not _loaded:
            return _ANSWERS[name]
        module = _real(self, path)
        return plain(name) if module is self else getattr(module, name)

    def __setattr__(self, name: str, value: Any) -> None:
        module = self if name.startswith("__") else _real(self, self.__name__)
        if module is self:
            super().__setattr__(name, value)
        else:
            setattr(module, name, value)


def _real(stub: ModuleType, path: str) -> ModuleType:
    """The module that took the stub's place, or the stub."""
    return sys.modules.get(path, stub) if load() else stub


def _manual_seed_all(seed: int) -> None:
    """Kept for the devices that there will be."""
    global _seed
    if _loaded:
        _torch.xpu.manual_seed_all(seed)
    else:
        _seed = int(seed)


_ANSWERS: Final[dict[str, Callable[..., object]]] = {
    "_is_in_bad_fork": lambda: _loaded and _torch.xpu._is_in_bad_fork(),
    "is_initialized": lambda: _loaded and bool(_torch.xpu.is_initialized()),
    "manual_seed_all": _manual_seed_all,
}


class _Finder:
    """Finds the modules whose import loads xpurt, as the finders do that are there then:
    xpurt's own is new, and Python would go on behind it."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name not in LOADS_XPURT or not load():
            return None
        found = (each.find_spec(name, path, target) for each in sys.meta_path)
        return next((spec for spec in found if spec is not None), None)


_finder: Any = _Finder()


class _Ops(torch._ops._OpNamespace):
    """``torch.ops.xpurt`` before xpurt has defined its ops."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        load()
        found = _torch.ops.xpurt
        return super().__getattr__(name) if found is self else getattr(found, name)


def _follow_ops() -> None:
    ours = _Ops("xpurt")
    torch.ops.xpurt = ours  # type: ignore[attr-defined]
    _undo.append(lambda: delattr(torch.ops, "xpurt"))


def _intercept_functions() -> None:
    _intercept(torch.accelerator, "current_accelerator", _matters)
    _intercept(torch.library.Library, "impl", _is_for_xpu)
    _intercept(torch.library.Library, "fallback", _is_for_xpu)
    for owner in (torch, torch.utils.dlpack):
        _intercept(owner, "from_dlpack", _may_be_on_xpu)
    # A program that was traced may call xpurt's ops.
    for name in ("import_ir_module", "import_ir_module_from_buffer"):
        _intercept(torch._C, name, lambda *_, **__: True)
    # A program may keep this function before xpurt replaces it.
    scans = sys.modules.get("torch._higher_order_ops.associative_scan")
    if scans is not None:
        for module in (scans, torch._higher_order_ops):
            _intercept(module, "associative_scan", lambda *_, **__: False)
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is not None and hasattr(c10d, "BackendConfig"):
        _intercept(c10d.BackendConfig, "__init__", _may_have_xpu)
        _intercept(c10d, "is_xccl_available", lambda *_, **__: True)
        _intercept(torch.distributed, "is_xccl_available", lambda *_, **__: True)


def _intercept(owner: Any, name: str, is_first_use: Callable[..., bool]) -> None:
    """Calls of a function that are a first use load xpurt, before it is called."""
    before = getattr(owner, name)

    @functools.wraps(before)
    def stand_in(*arguments: Any, **options: Any) -> Any:
        if is_first_use(*arguments, **options):
            load()
        now = getattr(owner, name)  # xpurt may have replaced it, too
        return (before if now is stand_in else now)(*arguments, **options)

    setattr(owner, name, stand_in)
    _undo.append(lambda: setattr(owner, name, before))


def _is_for_xpu(
    library: Any, _: Any, function: Any = None, key: str = "", **__: Any
) -> bool:
    """Whether a kernel is registered for xpu; xpurt's own would replace it later."""
    named = __.get("dispatch_key", key) or function
    return "XPU" in f"{named} {library.dispatch_key}"


# Functions of distributed_c10d that ask for the accelerator, and when the answer changes
# nothing, by their local variables.
_NO_MATTER: Final[dict[str, Callable[[dict[str, Any]], bool]]] = {
    "init_process_group": lambda names: names.get("device_id") is None,
    # Since 2.14. A group by a backend of the host has none for xpu.
    "_get_default_backend_type_for_backend_config": lambda names: (
        "xpu" not in names.get("device_backend_map", "xpu")
    ),
}


def _matters(*_: Any, **__: Any) -> bool:
    """Whether the accelerator is asked for by a function that uses the answer."""
    asking = sys._getframe(2)
    if asking.f_globals.get("__name__") != "torch.distributed.distributed_c10d":
        return True
    is_unused = _NO_MATTER.get(asking.f_code.co_name)
    return is_unused is None or not is_unused(asking.f_locals)


def _may_be_on_xpu(array: Any, *_: Any, **__: Any) -> bool:
    if isinstance(array, torch.Tensor):
        return False
    if hasattr(array, _USM_INTERFACE):
        return True
    with suppress(Exception):
        kind, _index = array.__dlpack_device__()
        return int(kind) == _ONE_API
    return True  # a capsule


def _may_have_xpu(_: Any, backend: Any = None, *__: Any) -> bool:
    return str(backend).lower() not in _HOST_BACKENDS


def miss_no_triton() -> None:
    """PyTorch's counter of operations warns where ``torch.version.xpu`` is set and Triton
    is missing, and Inductor imports it for CPU tensors, too. No kernel of xpu is one of
    Triton's. A second call does nothing."""
    logging.getLogger("torch.utils.flop_counter").addFilter(_is_not_of_triton)


def _is_not_of_triton(record: logging.LogRecord) -> bool:
    return "triton not found" not in str(record.msg)


# Note [Steps of optimizers]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# Each step of an optimizer asks whether an accelerator is available, to refuse a step in
# the capture of a graph, and warns of a `capturable` optimizer outside of one. For xpu
# the answer loads the drivers. While xpu is the accelerator and was not used, nothing is
# captured, and what the optimizer has is on the CPU.
_CHECKS: Final = (
    "_accelerator_graph_capture_health_check",
    "_cuda_graph_capture_health_check",  # the same, under the name that is called
)


def leave_cpu_programs() -> None:
    """Leaves the check out until xpu is used, and modules on the CPU alone in
    ``DataParallel``. A second call does nothing."""
    _run_data_parallel_where_the_module_is()
    for name in _CHECKS:
        before = getattr(torch.optim.Optimizer, name, None)
        if before is not None and not hasattr(before, "__wrapped__"):
            setattr(torch.optim.Optimizer, name, _once_xpu_is_used(before))


def _once_xpu_is_used(before: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(before)
    def check(optimizer: Any) -> None:
        # While Dynamo traces, the check does nothing.
        if torch.compiler.is_compiling():
            return
        accelerator = torch._C._accelerator_getAccelerator()  # loads nothing
        is_xpu = accelerator is not None and accelerator.type == "xpu"
        if not is_xpu or _torch.xpu.is_initialized():
            before(optimizer)

    return check


# Note [DataParallel of CPU modules]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
# ``torch.nn.DataParallel(module)`` takes all accelerators that there are, moves the
# module to the only one, and its results are there. Without an accelerator it calls the
# module. That is what a program on CPU tensors has to get. So the devices are chosen
# once the module has a tensor on xpu, unless the program names them or has used xpu.
def _run_data_parallel_where_the_module_is() -> None:
    kind: Any = torch.nn.DataParallel
    choose, call = kind.__init__, kind.forward
    if hasattr(choose, "__wrapped__"):
        return

    @functools.wraps(choose)
    def __init__(
        self: Any,
        module: Any,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        is_of_the_cpu = (
            device_ids is None
            and not _torch.xpu.is_initialized()
            and not torch.cuda.is_available()
            and _device_types(module) <= {"cpu"}
        )
        if is_of_the_cpu:
            torch.nn.Module.__init__(self)
            self.module, self.device_ids, self.dim = module, [], dim
            self._output_of_later_devices = output_device
        else:
            choose(self, module, device_ids, output_device, dim)

    @functools.wraps(call)
    def forward(self: Any, *inputs: Any, **options: Any) -> Any:
        waits = "_output_of_later_devices" in vars(self)
        if waits and "xpu" in _device_types(self.module):
            made = kind.__new__(kind)
            output = vars(self).pop("_output_of_later_devices")
            choose(made, self.module, None, output, self.dim)
            for name in ("device_ids", "output_device", "src_device_obj"):
                setattr(self, name, getattr(made, name))
        return call(self, *inputs, **options)

    kind.__init__, kind.forward = __init__, forward


def _device_types(module: Any) -> set[str]:
    tensors = (*module.parameters(), *module.buffers())
    return {each.device.type for each in tensors}
