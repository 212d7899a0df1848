"""Makes the events of xpu's work in ``torch.profiler`` say XPU.

PyTorch's C++ names the device of a kernel after what it was built for, and a build for
the CPU says CUDA. No event can be CUDA's there.
"""

import functools
from collections.abc import Callable
from typing import Any

from torch._C._autograd import DeviceType
from torch.autograd.profiler import profile

Undo = Callable[[], None]


def name_xpu() -> Undo:
    """Gives events of a profile of xpu the device type XPU.

    Returns what undoes this.
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
