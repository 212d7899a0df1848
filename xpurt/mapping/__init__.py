"""Mappings: which physical devices stand behind which xpu ordinals.

The first use of a device, or the first `set_xpu_mapping`, resolves the request into a
placement and installs it in the extension. Until then nothing here loads a driver.
"""

import gc
import os
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from xpurt import _C, kernels
from xpurt.config import config, names_a_mapping
from xpurt.errors import MappingError, XpurtError
from xpurt.mapping import devices as _devices
from xpurt.mapping.auto import identity, install_costs, preference
from xpurt.mapping.devices import (
    PhysicalDevice,
    physical_devices,
    queue_from_capsule,
    unusable_devices,
)
from xpurt.mapping.live_tensors import why_held
from xpurt.mapping.requests import (
    first_mapping,
    placement_for_rank,
    placement_of_process,
    request,
    requested_mapping,
)
from xpurt.mapping.resolve import Placement, devices_named
from xpurt.mapping.spec import MappingSpec
from xpurt.mapping.usability import UnusableDevice, remarks
from xpurt.startup import accelerator, extension, first_use, launch
from xpurt.startup.extras import tool

if TYPE_CHECKING:
    from xpurt.mapping.auto.explained_graphs import (
        ExplainedGraph,
        FormTimes,
        explain_graph,
        is_explaining,
    )
    from xpurt.mapping.auto.explanation import Explanation, explain
    from xpurt.mapping.auto.planning import Schedule, TaskGraph
    from xpurt.mapping.auto.planning.plan import plan
    from xpurt.mapping.auto.timeline import Timeline, timeline

__all__ = [
    "ExplainedGraph",
    "Explanation",
    "FormTimes",
    "PhysicalDevice",
    "Placement",
    "Schedule",
    "TaskGraph",
    "Timeline",
    "UnusableDevice",
    "before_change",
    "check_device_index",
    "count_ordinals",
    "current_placement",
    "devices_named",
    "explain",
    "explain_graph",
    "get_xpu_mapping",
    "has_no_device",
    "identity",
    "is_explaining",
    "install_costs",
    "on_change",
    "physical_devices",
    "placement_for_rank",
    "plan",
    "prefer",
    "queue_from_capsule",
    "remarks",
    "set_xpu_mapping",
    "timeline",
    "unusable_devices",
    "xpu_mapping",
]

# Imported at their first use, since most programs need none, and the import takes time:
# names by the module of `xpurt.mapping.auto` that has them.
_LATER = {
    **dict.fromkeys(("Schedule", "TaskGraph", "plan"), "planning"),
    **dict.fromkeys(("Explanation", "explain"), "explanation"),
    **dict.fromkeys(("ExplainedGraph", "FormTimes"), "explained_graphs"),
    **dict.fromkeys(("explain_graph", "is_explaining"), "explained_graphs"),
    **dict.fromkeys(("Timeline", "timeline"), "timeline"),
}
# These are in the package xpurt_tools.
_OF_THE_SIMULATOR = (
    *("CoExecution", "IndependentChains", "LargerModel", "SimulatedDevice"),
    *("Simulation", "WeightOp", "co_execute", "divided_ops", "fleets", "on_devices"),
    *("product_forms", "run_chains", "run_larger_model", "simulate", "workloads"),
)

Callback = Callable[[], object]


class _Installed(NamedTuple):
    spec: MappingSpec
    placement: Placement


# The installed mapping; None until the first use. Guarded by the lock, which is
# re-entrant: the installation may call `current_placement`.
_installed: _Installed | None = None
_lock = threading.RLock()
# Whether the warning about a process without ordinals was given.
_explained_why_none = False
_before: dict[object, Callback] = {}
_after: dict[object, Callback] = {}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"xpurt.mapping.auto.{_LATER[name]}"), name)
    if name in _OF_THE_SIMULATOR:
        return getattr(tool("simulation", f"xpurt.mapping.{name}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_xpu_mapping(
    mapping: str = "AUTO",
    *,
    devices: str | Iterable[str] | None = None,
    partition: int | Sequence[int] | str | None = None,
    overflow: str | None = None,
) -> None:
    """Puts physical devices behind the xpu ordinals, at once.

    mapping: in any case, "explicit" (each device is an ordinal: GPUs, then
        accelerators, then CPUs), "CPU" (xpu:0 alone), "GPU" (each GPU is an ordinal)
        or "AUTO" (all devices behind xpu:0; "AUTO:GPU,CPU" takes these in this order,
        "AUTO:-GPU" all but these).
    devices: SYCL filter strings of the devices to choose from, in this order: "gpu",
        "opencl:cpu:0", ["level_zero:gpu:1", "cpu"]. The number is SYCL's if backend and
        kind are given; else it counts the `physical_devices()` that match the rest.
    partition: splits each root device: a number of equal parts, a list of compute
        units per part, or "numa". Each part counts as a device.
    overflow: under "GPU", "host" has what a GPU has no room for in the host's memory;
        "off" has nothing there; None is what XPURT_GPU_OVERFLOW says.

    Setting the mapping that is already set does nothing. Raises MappingError if the
    devices cannot give what is requested, and while xpu tensors are alive; the old
    mapping then stays.
    """
    spec = request(mapping, devices, partition, overflow)
    with _lock:
        _change(spec)


def get_xpu_mapping() -> str:
    """The mapping, as `set_xpu_mapping` takes it. Loads no driver."""
    with _lock:
        return (_installed.spec if _installed else requested_mapping()).mapping


@contextmanager
def xpu_mapping(
    mapping: str = "AUTO",
    *,
    devices: str | Iterable[str] | None = None,
    partition: int | Sequence[int] | str | None = None,
    overflow: str | None = None,
) -> Iterator[Placement]:
    """`set_xpu_mapping` for the length of a ``with``; yields the placement.

    The previous mapping is restored at the exit, after an exception too. This fails if
    xpu tensors that were made inside are still alive: MappingError, or a note on the
    exception that is being raised.
    """
    spec = request(mapping, devices, partition, overflow)
    with _lock:
        before = _installed
        inside = _change(spec)
    try:
        yield inside
    except BaseException as error:
        _restore_after(error, before)
        raise
    _restore(before)


def current_placement() -> Placement:
    """The devices behind the ordinals; resolves the first mapping if need be."""
    with _lock:
        return (_installed or _install_first()).placement


def count_ordinals() -> int:
    """The number of ordinals of the mapping; 0 if it can't be installed. Never raises.

    If XPURT_MAPPING or another variable requests something that is not possible, a
    warning gives the reason, once. If nothing was requested and no device is found,
    there is no warning: the first use of xpu raises with the reason.
    """
    if _C.in_bad_fork() or extension.inactive_reason() or _devices.loaded_before_fork():
        return 0
    try:
        return len(current_placement().ordinals)
    except Exception as error:
        if names_a_mapping() or not isinstance(error, MappingError):
            _tell_why_none(error)
        return 0


def has_no_device() -> bool:
    """Whether it is known that no device is there. Loads no driver, never raises."""
    return _devices.known_to_be_none()


def _tell_why_none(error: Exception) -> None:
    global _explained_why_none
    if _explained_why_none:
        return
    _explained_why_none = True
    with suppress(Warning):  # of a process that makes warnings errors
        warnings.warn(f"there is no xpu device: {error}", RuntimeWarning, stacklevel=4)


def check_device_index(index: int) -> None:
    """Raises MappingError unless xpu:`index` exists."""
    current_placement().check_index(index)


def prefer(kind: str) -> AbstractContextManager[None]:
    """Inside of the ``with``, ops of this thread, and of backward passes that it
    starts, run on devices of `kind` where possible.

    kind: "CPU", "GPU" or "accelerator", in any case. It changes nothing for an ordinal
        of one device. An op without a kernel for such a device, or for its dtype there,
        runs on another one.

    Raises MappingError if `kind` is none of these, or no ordinal has such a device.
    """
    return preference(kind, current_placement())


def on_change(callback: Callback) -> Callable[[], None]:
    """Runs `callback` after each change of the mapping, the first one included.

    Returns a function that undoes this.
    """
    return _register(_after, callback)


def before_change(callback: Callback) -> Callable[[], None]:
    """Runs `callback` before live tensors are counted. It has to release xpurt's own.

    The change may still be refused. Returns a function that undoes this.
    """
    return _register(_before, callback)


def _register(table: dict[object, Callback], callback: Callback) -> Callable[[], None]:
    key = object()
    with _lock:
        table[key] = callback

    def undo() -> None:
        with _lock:
            table.pop(key, None)

    return undo


def _change(spec: MappingSpec) -> Placement:
    global _installed
    _check_usable()
    if _installed and _installed.spec == spec:
        return _installed.placement
    placement = placement_of_process(spec, launch.local_rank())
    accelerator.activate(asked=True)
    old = _installed
    if old is None:
        _install(spec, placement)
        _run(_after)
        return placement
    _uninstall(f"to {spec}")
    try:
        _install(spec, placement)
    except Exception:
        _install(*old)
        raise
    finally:
        _run(_after)
    return placement


def _restore(before: _Installed | None) -> None:
    with _lock:
        if before is not None:
            _change(before.spec)
        elif _installed is not None and _installed.spec != first_mapping(
            launch.local_rank()
        ):
            _uninstall("back")
            _run(_after)


def _restore_after(error: BaseException, before: _Installed | None) -> None:
    try:
        try:
            _restore(before)
        except MappingError:
            # The frames that the exception has left still hold their tensors.
            traceback.clear_frames(error.__traceback__)
            _restore(before)
    except XpurtError as refused:
        error.add_note(f"The mapping from before was not restored: {refused}")


def _install_first() -> _Installed:
    """The extension calls this at the first use of a device."""
    with _lock:
        if _installed is not None:
            return _installed
        _check_usable()
        accelerator.activate(asked=bool(config().mapping))
        rank = launch.local_rank()
        with first_use.without_collections():
            spec = first_mapping(rank)
            first = _install(spec, placement_of_process(spec, rank))
        _run(_after)
        return first


def _install(spec: MappingSpec, placement: Placement) -> _Installed:
    global _installed
    addresses = [[d.address for d in ordinal] for ordinal in placement.ordinals]
    kernels.register()
    try:
        facts = placement.mapping, addresses, placement.remark, placement.overflows
        _C.install_placement(*facts)
        # Otherwise opened at the first use: that may be in a forked child.
        if not _devices.survive_fork():
            _C.open_placement()
        install_costs(placement)
    except RuntimeError as error:
        raise MappingError(
            f"mapping {spec} could not be installed: {error}. "
            "`python -m xpurt doctor` looks at each device."
        ) from error
    if _C.placement_epoch() == 1:
        kernels.configure(config())
        _C.set_memory_caching(not config().no_memory_caching)
    _installed = _Installed(spec, placement)
    return _installed


def _uninstall(where: str) -> None:
    """Removes the placement from the extension. Raises while xpu tensors are alive."""
    global _installed
    assert _installed is not None
    _run(_before)
    storages, size_bytes = _C.uninstall_placement()
    if storages:
        _C.drain_autograd_threads()  # a backward's last tensors go after its end
        gc.collect()
        storages, size_bytes = _C.uninstall_placement()
    if storages:
        raise MappingError(why_held(f"{_installed.spec} {where}", storages, size_bytes))
    _installed = None


def _run(callbacks: dict[object, Callback]) -> None:
    for callback in list(callbacks.values()):
        callback()


def _check_usable() -> None:
    reason = extension.inactive_reason()
    if reason is not None:
        raise MappingError(f"xpurt gives this PyTorch no xpu device: {reason}")
    if _C.in_bad_fork() or _devices.loaded_before_fork():
        raise XpurtError(
            "Cannot re-initialize XPU in forked subprocess. To use XPU with "
            "multiprocessing, you must use the 'spawn' start method"
        )


def _forget_lock() -> None:
    # Another thread of the parent may have held it; it does not exist here.
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_forget_lock)
if extension.inactive_reason() is None:
    _C.set_placement_resolver(_install_first)
