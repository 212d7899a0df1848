"""`torch.accelerator.current_accelerator()` on a machine without any SYCL device.

PyTorch's answer is the accelerator that it was built for, whether it is there or not.
xpurt comes with every installation of itself, like a build for the CPU that has learned
one more device: where it is known that there is no such device, a program that asks
takes the CPU, as it would without xpurt. The answer loads no driver, so that a process
can still fork: until devices were looked for, xpu counts as absent only where no driver
can be found.
"""

import functools
from collections.abc import Callable

import torch

from xpurt.mapping import has_no_device

Question = Callable[..., torch.device | None]


def answer_none() -> Callable[[], None]:
    """Puts the answer in place. Returns what undoes this."""
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
