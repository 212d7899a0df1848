"""Lazy tensors in `torch.save`, `pickle` and `copy.deepcopy`."""

import functools
from typing import Any

import torch
from torch import Tensor


@functools.cache
def define() -> None:
    """A lazy tensor has no storage. It is saved as a CPU tensor and its device, as XLA's
    tensors are. A second call does nothing."""
    before: Any = Tensor._reduce_ex_internal

    @functools.wraps(before)
    def reduce(tensor: Tensor, proto: int) -> Any:
        if tensor.device.type != "lazy":
            return before(tensor, proto)
        return (
            torch._utils._rebuild_device_tensor_from_cpu_tensor,
            (
                tensor.detach().cpu(),
                tensor.dtype,
                str(tensor.device),
                tensor.requires_grad,
            ),
        )

    Tensor._reduce_ex_internal = reduce  # type: ignore[method-assign]
