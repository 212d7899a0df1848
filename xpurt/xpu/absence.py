"""`torch.accelerator.current_accelerator()` on a machine without any SYCL device.

PyTorch returns the accelerator that it was built for, present or not. Here, None is
returned if it is known that there is no SYCL device: the program then takes the CPU, as
it would without xpurt. The answer loads no driver, so that a process can still fork.
Until devices have been listed, xpu counts as absent only if no driver can be found.
"""

import functools
from collections.abc import Callable

import torch

from xpurt.mapping import has_no_device

Question = Callable[..., torch.device | None]


def answer_none() -> Callable[[], None]:
    """Replaces the function. Returns a function that undoes this."""
    original: Question = torch.accelerator.current_accelerator
    vars(torch.accelerator)["current_accelerator"] = _asking(original)

    def undo() -> None:
        vars(torch.accelerator)["current_accelerator"] = original

    return undo


def _asking(original: Question) -> Question:
    @functools.wraps(original)
    def current_accelerator(check_available: bool = False) -> torch.device | None:
        found = original(check_available)
        if found is not None and found.type == "xpu" and has_no_device():
            return None
        return found

    return current_accelerator
