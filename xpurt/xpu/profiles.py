"""Gives the events of xpu's work in ``torch.profiler`` the device type XPU.

PyTorch's C++ takes the device type of a kernel from its build options, and a build for
the CPU takes CUDA. There is no event of CUDA in a profile of xpu.
"""

import functools
from collections.abc import Callable
from typing import Any

from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile

Undo = Callable[[], None]


def name_xpu() -> Undo:
    """Gives events of a profile of xpu the device type XPU.

    Returns a function that undoes this.
    """
    before = profile._parse_kineto_results

    @functools.wraps(before)
    def parse(self: profile, *arguments: Any, **options: Any) -> Any:
        events = before(self, *arguments, **options)
        if self.use_device == "xpu":
            for event in events:
                if event.device_type == DeviceType.CUDA:
                    event.device_type = DeviceType.XPU
        return events

    def undo() -> None:
        profile._parse_kineto_results = before  # type: ignore[method-assign]

    profile._parse_kineto_results = parse  # type: ignore[method-assign]
    return undo
