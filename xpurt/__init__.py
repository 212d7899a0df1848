"""A working ``xpu`` device for a stock PyTorch wheel."""

from xpurt.startup import extension

if extension.load():
    from xpurt.startup import accelerator

    accelerator.activate_at_import()

from xpurt.calibration import calibrate
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
    xpu_mapping,
)
from xpurt.optimization import optimize
from xpurt.prototype import PrototypeDevice, prototype_device
from xpurt.runtime import register_runtime
from xpurt.sharing.lazy_copies import lazy_copies
from xpurt.sharing.place import place
from xpurt.sharing.share import from_usm, install_usm_interface, share, where

if extension.inactive_reason() is None:
    from xpurt import integrations, xpu
    from xpurt.sharing import raw_pointer_guards
    from xpurt.sharing.lazy_copies import enable_at_import

    xpu.install(register_runtime)
    raw_pointer_guards.follow_mapping()
    install_usm_interface()
    enable_at_import()
    integrations.follow_imports()

__all__ = [
    "MappingError",
    "PrototypeDevice",
    "XpurtError",
    "calibrate",
    "explain",
    "from_usm",
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
    "register_runtime",
    "set_kernel_policy",
    "set_xpu_mapping",
    "share",
    "timeline",
    "where",
    "xpu_mapping",
]

__version__ = "0.1.0"
