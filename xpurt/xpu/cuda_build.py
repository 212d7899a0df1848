"""What differs in Python on a build of PyTorch that has CUDA compiled in.

Some of PyTorch raises on such a build if XPU is compiled in, too. So
``torch.xpu._is_compiled()`` returns False there, except to the callers that would then
take the layer for a stub. And code that checks for CUDA alone is made to check for xpu
as well.
"""

import sys
from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import FakeTensorMode  # torch has it loaded

_LAYER = "torch.xpu"
# It imports the function for raw streams from torch._C only if XPU is compiled in.
_INTERFACES = "torch._dynamo.device_interface"

Undo = Callable[[], None]


def is_compiled() -> bool:
    """Whether PyTorch has XPU compiled in; the answer depends on the calling module."""
    caller = str(sys._getframe(1).f_globals.get("__name__", ""))
    return caller in (_LAYER, _INTERFACES) or caller.startswith(f"{_LAYER}.")


def heed_xpu_when_tracing() -> Undo:
    """Makes FakeTensorMode initialize devices if there is an xpu, as other builds do.

    Returns a function that undoes this.
    """
    before = FakeTensorMode.avoid_device_init

    def undo() -> None:
        FakeTensorMode.avoid_device_init = before  # type: ignore[method-assign]

    FakeTensorMode.avoid_device_init = property(_no_device_at_hand)  # type: ignore[method-assign,assignment]
    return undo


def _no_device_at_hand(mode: FakeTensorMode) -> bool:
    return not (torch.xpu.is_available() or torch.cuda.is_available())
