"""A working ``xpu`` device for a stock PyTorch wheel."""

from xpurt import extension

if extension.load():
    from xpurt import accelerator, kernels

    kernels.register()
    accelerator.settle_at_import()

from xpurt.errors import XpurtError
from xpurt.kernels import get_kernel_policy, kernel_policy, set_kernel_policy
from xpurt.mapping import (
    get_xpu_mapping,
    physical_devices,
    prefer,
    set_xpu_mapping,
    xpu_mapping,
)
from xpurt.runtime import register_runtime

if extension.inactive_reason() is None:
    from xpurt import xpu

    xpu.install(register_runtime)

__all__ = [
    "XpurtError",
    "get_kernel_policy",
    "get_xpu_mapping",
    "kernel_policy",
    "physical_devices",
    "prefer",
    "register_runtime",
    "set_kernel_policy",
    "set_xpu_mapping",
    "xpu_mapping",
]

__version__ = "0.1.0"
