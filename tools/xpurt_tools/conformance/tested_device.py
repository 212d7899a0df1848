"""The device whose results are compared with the CPU's: xpu, "lazy", or a prototype."""

import torch

import xpurt
import xpurt.lazy

_name = "xpu"


def use(name: str) -> None:
    """Tests another device from now on. Makes it, if need be: a prototype has memory of
    the host.

    Raises ValueError if it can't be made.
    """
    global _name
    if name == "lazy":
        xpurt.lazy.init(compile="never")
    elif name != "xpu":
        xpurt.prototype_device(name)
    _name = name


def has_layouts() -> bool:
    """Whether its tensors have strides and storages: lazy ones have none."""
    return _name != "lazy"


def tested_device() -> torch.device:
    return torch.device(_name, 0)


def wait() -> None:
    """Until all ops have run. Raises what the first of them raised that failed."""
    if _name == "lazy":
        xpurt.lazy.step(wait=True)
    torch.xpu.synchronize()


def is_of_earlier_work(error: Exception | None) -> bool:
    """Whether a kernel found the error, and a wait raised it, maybe that of a later call:
    under AUTO each timed sample waits."""
    return "submitted earlier" in str(error)
