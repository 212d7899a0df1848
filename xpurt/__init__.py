"""A working ``xpu`` device for a stock PyTorch wheel."""

import torch

from xpurt import driver

driver.load_libraries()

from xpurt import _C  # noqa: E402  (needs the libraries)

__version__ = "0.1.0"
