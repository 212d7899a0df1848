"""A working ``xpu`` device for a stock PyTorch wheel."""

from xpurt import _autoload, extension

if (_reason := extension.load()) is not None:
    _autoload.set_inactive(_reason)

__version__ = "0.1.0"
