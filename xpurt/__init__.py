"""A working ``xpu`` device for a stock PyTorch wheel."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from xpurt.startup import extension, first_use

if extension.load():
    from xpurt.startup import accelerator

    accelerator.activate_at_import()

from xpurt.calibration import calibrate
from xpurt.cpu_tensors.setting import cpu_kernels, get_cpu_kernels, set_cpu_kernels
from xpurt.errors import MappingError, XpurtError
from xpurt.kernels import (
    get_kernel_policy,
    kernel_policy,
    op_report,
    set_kernel_policy,
)
from xpurt.mapping import (
    explain,
    get_xpu_mapping,
    physical_devices,
    prefer,
    set_xpu_mapping,
    timeline,
    unusable_devices,
    xpu_mapping,
)
from xpurt.optimization import optimize
from xpurt.optimization.autocast.block import autocast
from xpurt.quantization import quantize
from xpurt.runtime import register_runtime
from xpurt.sharing.lazy_copies import lazy_copies
from xpurt.sharing.place import place
from xpurt.sharing.share import from_usm, install_usm_interface, share, where

if extension.inactive_reason() is None:
    from xpurt import fused_ops, integrations, xpu
    from xpurt.cpu_tensors import setting
    from xpurt.sharing import raw_pointer_guards
    from xpurt.sharing.lazy_copies import enable_at_import

    xpu.install(register_runtime)
    raw_pointer_guards.follow_mapping()
    install_usm_interface()
    enable_at_import()
    integrations.follow_imports()
    fused_ops.define_ops()
    setting.follow_mapping()
    setting.enable_at_import()

first_use.finish()

__all__ = [
    "MappingError",
    "PrototypeDevice",
    "XpurtError",
    "autocast",
    "calibrate",
    "cpu_kernels",
    "explain",
    "from_usm",
    "get_cpu_kernels",
    "get_kernel_policy",
    "get_xpu_mapping",
    "kernel_policy",
    "lazy_copies",
    "op_report",
    "optimize",
    "physical_devices",
    "place",
    "prefer",
    "prototype_device",
    "quantize",
    "register_runtime",
    "set_cpu_kernels",
    "set_kernel_policy",
    "set_xpu_mapping",
    "share",
    "timeline",
    "unusable_devices",
    "where",
    "xpu_mapping",
]

if TYPE_CHECKING:
    from xpurt.prototype import PrototypeDevice, prototype_device

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        """`__version__` is read from the metadata of the installed package, and prototypes
        are a room that is loaded when it is asked for."""
        if name in ("PrototypeDevice", "prototype_device"):
            return getattr(import_module("xpurt.prototype"), name)
        if name != "__version__":
            raise AttributeError(f"module 'xpurt' has no attribute {name!r}")
        try:
            return version("xpurt")
        except PackageNotFoundError:
            raise AttributeError(
                "xpurt has no version, as it is imported without being installed"
            ) from None
