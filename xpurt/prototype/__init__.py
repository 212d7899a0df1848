"""A whole device for a device type that PyTorch has keys for, in one call.

Its tensors are those of the CPU, or of xpu, under the type's own name, or have memory of a
SYCL device. All ops work, and a vendor replaces their kernels one by one.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from xpurt import _C, _prototype, optimizer_devices
from xpurt.compiler.renamed.devices import CompilesGraphs
from xpurt.errors import MappingError, nearest
from xpurt.mapping import (
    PhysicalDevice,
    devices_named,
    physical_devices,
    queue_from_capsule,
)
from xpurt.prototype import (
    compiled,
    dlpack,
    methods,
    process_groups,
    report,
    saved_storages,
    seeds,
    tied_weights,
)
from xpurt.prototype.runtime_module import RuntimeModule
from xpurt.prototype.vendor_kernels import KernelRow, rows_of
from xpurt.runtime import register_runtime
from xpurt.startup.extras import tool

__all__ = [
    "CompilesGraphs",
    "KernelRow",
    "PrototypeDevice",
    "kernels_of",
    "new_package",
    "prototype_device",
    "register_compiler",
    "register_derivative",
]

# Types with an Autocast and an Autograd key, for which the wheel has no backend.
TYPES: Final = ("ipu", "hpu", "mtia", "maia", "xla")
# PyTorch asks no hooks of these.
WITHOUT_HOOKS: Final = ("ipu", "maia", "xla")
# Types that PyTorch knows, and that can't be prototyped.
_OTHERS: Final = (
    *("cpu", "cuda", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve"),
    *("fpga", "lazy", "vulkan", "mps", "meta"),
)

_lock = threading.Lock()
_made: dict[str, "PrototypeDevice"] = {}


@dataclass(frozen=True, slots=True)
class PrototypeDevice:
    """A prototype device of this process.

    on_copies: whether the CPU's kernels get copies: the host can't read the memory.
    """

    name: str
    memory: str
    devices: int
    runtime: RuntimeModule
    on_copies: bool = False

    def calls(self) -> dict[str, int]:
        """How often each op ran on the device behind this one, for which the vendor has no
        kernel yet. Overloads are apart: "aten::add.Tensor"."""
        rows = _prototype.prototype_calls(_type_of(self.name))
        return {op: calls for op, vendors, calls, *_ in rows if not vendors}

    def default_generator(self, index: int = 0) -> torch.Generator:
        """The generator that random ops on device `index` draw from."""
        return _prototype.prototype_generator(_type_of(self.name), index)

    def sycl_queue(self, stream: torch.Stream | None = None) -> Any:
        """The queue of a stream as a ``dpctl.SyclQueue``; by default of the current one.

        Raises ValueError if the device's memory is not that of a SYCL device.
        """
        if stream is None:
            stream = self.runtime.current_stream()
        return queue_from_capsule(_prototype.prototype_queue(stream))


def prototype_device(
    name: str,
    memory: str = "host",
    devices: int = 1,
    *,
    runtime: object | None = None,
) -> PrototypeDevice:
    """Makes a device of the type `name`, for the rest of the process.

    name: "ipu", "hpu", "mtia", "maia" or "xla"; any other name, of letters and underscores,
        becomes that of PrivateUse1, of which a process has one.
    memory: "host": tensors have memory of the CPU, and PyTorch's CPU kernels compute.
        "xpu": they have memory of xpu, whose kernels compute on its streams; device i is
        xpu:i.
        A SYCL filter string, "gpu" or "opencl:cpu:0": they have unified shared memory of
        that device, and its streams are queues. PyTorch's CPU kernels compute in this
        memory, or on copies if the host can't read it. If the string names fewer SYCL
        devices than `devices`, several have memory of the same one.
    devices: how many devices of the type there are, 1 to 64.
    runtime: a module or an object of the vendor's whose functions `torch.<name>` gets. What
        it lacks of `xpurt.runtime.AcceleratorRuntime`, and more, is filled in. Without
        effect if the device is there already.

    `torch.<name>` is its runtime, `tensor.<name>()` and `module.<name>()` move there. The
    same call again returns the same device; `op_report` counts calls of the vendor's kernels
    that are registered by then.

    Raises ValueError if the type can't be prototyped, or is one already with other
    arguments, or if there is no such memory.
    """
    if not isinstance(memory, str) or not memory:
        raise ValueError(
            f'memory is "host", "xpu" or a SYCL filter string as "gpu"; found {memory!r}'
        )
    if type(devices) is not int or not 1 <= devices <= 64:
        raise ValueError(f"devices is a number from 1 to 64; found {devices!r}")
    with _lock:
        found = _made.get(name) if isinstance(name, str) else None
        if found is None:
            _check_name(name)
            found = _made[name] = _make(name, memory, devices, runtime)
        elif (found.memory, found.devices) != (memory, devices):
            raise ValueError(
                f"{name} has {found.devices} devices with memory={found.memory!r} in this "
                "process already. Start another one to change that."
            )
        _prototype.count_vendor_kernels(_type_of(name))
        return found


def register_derivative(op: str, function: Callable[..., object], name: str) -> None:
    """From now on autograd calls `function` for the op `op`, as "mish", on tensors of the
    device type `name`; a device of the type may be made later. PyTorch's torch.library does
    the same by the names AutogradIPU, AutogradHPU, AutogradXLA and AutogradPrivateUse1; it
    does not parse those of mtia and maia.

    Raises ValueError if the type can't be prototyped, and RuntimeError if there is no such
    op.
    """
    _check_name(name)
    op = op.removeprefix("aten::")
    known = torch._C._dispatch_has_kernel(f"aten::{op}")
    if not known:
        raise RuntimeError(
            f'a derivative is for an op of aten, as "mish" or "add.Tensor"; found {op!r}, '
            "which PyTorch does not have"
        )
    _prototype.register_derivative(op, _type_of(name), function)


def register_compiler(name: str, function: CompilesGraphs | None) -> None:
    """From now on torch.compile calls `function` for graphs on the device type `name`; a
    device of the type may be made later. None: the device behind compiles again.

    function: is called with a torch.fx.GraphModule, which writes to no input, of PyTorch's
        core ATen ops and the ops that the vendor has kernels for, and with its inputs,
        tensors without memory. Returns a function of these inputs that returns the list
        of the results. The forward and the backward of a graph are one each. If it raises
        NotImplementedError, the graph runs op by op, with a warning.

    Programs that have been compiled before are compiled again. Raises ValueError if the
    type can't be prototyped, and TypeError if `function` can't be called.
    """
    _check_name(name)
    compiled.register_compiler(name, function)


def kernels_of(name: str) -> list[KernelRow]:
    """Whose kernel each op has at each dispatch key of the device type `name`. Makes the
    device, if need be.

    Raises ValueError as prototype_device() does.
    """
    with _lock:
        is_made = name in _made
    if not is_made:
        prototype_device(name)
    return list(rows_of(_type_of(name)))


def new_package(name: str, folder: Path) -> list[Path]:
    """Writes a vendor's package for the device type `name` into `folder`: a kernel, a
    derivative, a runtime module, and tests that pass. Returns the files.

    Raises ValueError if the type can't be prototyped, FileExistsError if one of the files
    is there already, and MissingExtra without the extra `tools`, which has the template.
    """
    _check_name(name)
    key = name.upper() if name in TYPES else "PrivateUse1"
    template = tool("vendor_package", "xpurt.prototype.new_package")
    files: list[Path] = template.write_package(name, key, folder)
    return files


def _type_of(name: str) -> str:
    return name if name in TYPES else "privateuseone"


def _check_name(name: str) -> None:
    if not isinstance(name, str):
        raise ValueError(
            f'a device type is a string as "ipu" or "mydevice"; found {name!r}'
        )
    if name in _OTHERS:
        raise ValueError(
            f'the device type "{name}" can\'t be prototyped: PyTorch has code of its own for '
            f"it. Take one of {', '.join(TYPES)}, or a name of your own."
        )
    if not name.replace("_", "").isalpha() or not name.islower():
        raise ValueError(
            f"PyTorch takes lower-case letters and underscores in the name of a device type; "
            f"found {name!r}"
        )
    own = torch._C._get_privateuse1_backend_name()
    if name not in TYPES and own not in ("privateuseone", name):
        near = nearest(name, TYPES)
        raise ValueError(
            f'PrivateUse1 is named "{own}" in this process, so there is no key left for '
            f'"{name}"' + (f'. Did you mean "{near}"?' if near else ".")
        )


def _take_accelerator(name: str, memory: str) -> None:
    """PyTorch's autograd knows the streams of one accelerator. A type with hooks takes that
    place from xpu."""
    if name in ("hpu", "mtia") and memory == "xpu":
        raise ValueError(
            f"{name} is PyTorch's accelerator in place of xpu, so xpu can't be behind it. "
            'Give memory="host", or take another type.'
        )
    for other in ("xpu", "cuda"):
        in_use = getattr(torch, other).is_initialized()
        if in_use and (other, memory) != ("xpu", "xpu"):
            raise ValueError(
                f"{name} would take the place of {other} as PyTorch's accelerator, and {other} "
                f"is in use. Make it before the first use of {other}, or take one of "
                f"{', '.join(WITHOUT_HOOKS)}."
            )
    _C.set_active(False)
    if name == "hpu":
        _C.hide_accelerator()


def _make(
    name: str, memory: str, devices: int, vendor: object | None
) -> PrototypeDevice:
    layouts = sys.modules.get("xpurt._layouts")
    if layouts is not None and name in layouts.types_of_keys():
        raise ValueError(
            f"the Autocast key of {name} is that of xpurt.autocast with a layout in this "
            "process. Make the device before its first block."
        )
    sycl_devices = () if memory in ("host", "xpu") else _sycl_devices(memory, devices)
    if name not in WITHOUT_HOOKS:
        _take_accelerator(name, memory)
    if memory == "xpu":
        _C.init()
        there = torch.xpu.device_count()
        if devices > there:
            raise ValueError(
                f"{devices} devices need {devices} ordinals of xpu behind them; found "
                f'{there}. xpurt.set_xpu_mapping("explicit", devices="cpu", partition={devices}) makes them.'
            )
    if name not in TYPES:
        torch._C._rename_privateuse1_backend(name)
    _prototype.make_prototype_device(
        _type_of(name),
        "xpu" if memory == "xpu" else "cpu",
        devices,
        [each.address for each in sycl_devices],
    )
    runtime = RuntimeModule(
        name, _type_of(name), memory, devices, vars(torch).get(name), vendor
    )
    register_runtime(name, runtime)
    methods.define(name)
    if name in TYPES:
        seeds.follow(runtime)
    saved_storages.register(name)
    process_groups.follow(name)
    dlpack.follow(name, _type_of(name), memory)
    tied_weights.keep()
    optimizer_devices.allow(name, fused=True)
    compiled.take_graphs(name, _type_of(name), "xpu" if memory == "xpu" else "cpu")
    report.join()
    copies = _prototype.prototype_copies(_type_of(name))
    return PrototypeDevice(name, memory, devices, runtime, copies)


def _sycl_devices(memory: str, devices: int) -> tuple[PhysicalDevice, ...]:
    """One per device, in turn."""
    try:
        named = devices_named(memory, physical_devices())
    except MappingError as error:
        raise ValueError(
            f'memory is "host", "xpu" or a SYCL filter string; found {memory!r}: {error}'
        ) from error
    return tuple(named[i % len(named)] for i in range(devices))
