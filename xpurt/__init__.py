"""A working ``xpu`` device for a stock PyTorch wheel."""

from xpurt import _autoload, extension

if (_reason := extension.load()) is not None:
    _autoload.set_inactive(_reason)

from xpurt.errors import XpurtError  # noqa: E402  (these need the extension)
from xpurt.mapping import (  # noqa: E402
    get_xpu_mapping,
    physical_devices,
    prefer,
    set_xpu_mapping,
    xpu_mapping,
)
from xpurt.runtime import register_runtime  # noqa: E402

__all__ = [
    "XpurtError",
    "get_xpu_mapping",
    "physical_devices",
    "prefer",
    "register_runtime",
    "set_xpu_mapping",
    "xpu_mapping",
]

__version__ = "0.1.0"
