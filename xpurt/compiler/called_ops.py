"""Ops that Inductor calls as in eager mode."""

import functools
from typing import Any

import torch

from xpurt.compiler import opencl_types


def define() -> None:
    _call_what_kernels_lack()
    _call_gradients_of_embeddings()


def _call_what_kernels_lack() -> None:
    """Those that have a tensor which the device's code can't have."""
    from torch._inductor import lowering

    before = lowering.unsupported_input_tensor

    @functools.wraps(before)
    def unsupported(t: torch.Tensor, node: Any = None) -> Any:
        lacks = t.device.type == "xpu" and not opencl_types.computes(t)
        return lacks or before(t, node)

    lowering.unsupported_input_tensor = unsupported


def _call_gradients_of_embeddings() -> None:
    """PyTorch decomposes this op for no xpu tensor. It is called where XPU is compiled
    in when Inductor is imported: not on a CUDA build, and not if xpurt comes later."""
    from torch._inductor.lowering import lowerings, make_fallback

    op = torch.ops.aten.embedding_dense_backward
    if op.default not in lowerings:
        make_fallback(op, warn=False)  # type: ignore[no-untyped-call]
