"""Layouts of results while a graph is traced, where PyTorch's differ by device.

A compiled graph takes the addresses of elements from the layouts that it was traced with.
PyTorch describes xpu by Intel's kernels: a Fourier transform of several dimensions ends
in another layout there. The kernels of xpurt return that of the CPU.
"""

from typing import Any

import torch
from torch._subclasses.fake_impls import op_implementations_dict, register_op_impl

from xpurt.compiler.renamed import devices

_TRANSFORM = torch.ops.aten._fft_r2c
_OPS = (_TRANSFORM.default,)


def define() -> None:
    """Gives xpu the layouts of the CPU. A second call does nothing."""
    for op in _OPS:
        if op not in op_implementations_dict:
            register_op_impl(op)(_as_on_cpu)


def _as_on_cpu(fake_mode: Any, op: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if not devices.is_ours(x.device):
        return NotImplemented  # PyTorch's own function is next
    with fake_mode:
        there = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device="cpu")
        found = op(there, *args, **kwargs)
        return torch.empty_strided(
            found.size(), found.stride(), dtype=found.dtype, device=x.device
        )
