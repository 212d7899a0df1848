"""A working ``xpu`` device for a stock PyTorch wheel."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from xpurt.startup import extension, first_use

if extension.load():
    from xpurt.startup import accelerator

    accelerator.activate_at_import()

from xpurt.cpu_tensors.setting import cpu_kernels, get_cpu_kernels, set_cpu_kernels
from xpurt.errors import MappingError, XpurtError
from xpurt.kernels import (
    get_kernel_policy,
    kernel_policy,
    set_kernel_policy,
)
from xpurt.mapping import (
    get_xpu_mapping,
    physical_devices,
    prefer,
    set_xpu_mapping,
    unusable_devices,
    xpu_mapping,
)
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
    "load_gguf",
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
    from xpurt import calibration as calibration
    from xpurt import optimization as optimization
    from xpurt import quantization as quantization
    from xpurt.calibration import calibrate
    from xpurt.kernels import op_report
    from xpurt.language import load_gguf
    from xpurt.mapping import explain, timeline
    from xpurt.optimization import optimize
    from xpurt.optimization.autocast.block import autocast
    from xpurt.prototype import PrototypeDevice, prototype_device
    from xpurt.quantization import quantize

    __version__: str
else:
    # Loaded when they are asked for: the first use of xpu waits for `import xpurt`.
    _ROOMS = ("calibration", "optimization", "quantization")
    _OF_ROOMS = {
        "PrototypeDevice": "xpurt.prototype",
        "autocast": "xpurt.optimization.autocast.block",
        "calibrate": "xpurt.calibration",
        "explain": "xpurt.mapping",
        "load_gguf": "xpurt.language",
        "op_report": "xpurt.kernels",
        "optimize": "xpurt.optimization",
        "prototype_device": "xpurt.prototype",
        "quantize": "xpurt.quantization",
        "timeline": "xpurt.mapping",
    }

    def __getattr__(name: str) -> Any:
        """The rooms and what they have, and `__version__`, which is read from the
        metadata of the installed package."""
        if name in _ROOMS:
            return import_module(f"xpurt.{name}")
        if name in _OF_ROOMS:
            found = getattr(import_module(_OF_ROOMS[name]), name)
            globals()[name] = found  # programs ask for autocast at each block
            return found
        if name == "__version__":
            return _version()
        raise AttributeError(f"module 'xpurt' has no attribute {name!r}")


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("xpurt")
    except PackageNotFoundError:
        raise AttributeError(
            "xpurt has no version, as it is imported without being installed"
        ) from None
