"""Calls in float64 on devices without it: the kernel for CPU tensors, on copies."""

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from xpurt.config import config
from xpurt.errors import FallbackError

Function = Callable[..., Any]


def or_on_host(name: str, xpu: Function, cpu: Function) -> Function:
    """The kernel `xpu`. For operands in float64 on a device that lacks it, `cpu` on
    copies in host memory, with a warning, once per op.

    Raises FallbackError if ``XPURT_FALLBACK`` forbids that.
    """

    @wraps(xpu)
    def kernel(*arguments: Any) -> Any:
        device = _lacking_float64(arguments)
        if device is None:
            return xpu(*arguments)
        _tell(f"xpurt::{name}", device)
        made = cpu(*tree_map_only(Tensor, Tensor.cpu, arguments))
        return tree_map_only(Tensor, lambda result: result.to(device), made)

    return kernel


def _lacking_float64(arguments: tuple[Any, ...]) -> torch.device | None:
    """The device of an operand in float64, if it can't compute in it."""
    for each in arguments:
        if isinstance(each, Tensor) and each.dtype == torch.float64:
            if torch.xpu.get_device_properties(each.device).has_fp64:
                return None
            return each.device
    return None


def _tell(op: str, device: torch.device) -> None:
    text = (
        f"{op} computes in float64, which {device} "
        f"({torch.xpu.get_device_name(device)}) lacks: the operands are copied to the "
        "host, which computes it, and the results back."
    )
    if config().fallback == "error":
        raise FallbackError(
            f"{text} XPURT_FALLBACK=error forbids it: use float32, or the CPU device"
        )
    if config().fallback == "warn":
        _warn(text)


@cache
def _warn(text: str) -> None:
    warnings.warn(
        f"{text} This is said once per op; XPURT_FALLBACK=silent silences it.",
        UserWarning,
        stacklevel=4,
    )
