"""`associative_scan` on xpu is composed of other ops.

With ``combine_mode="pointwise"``, which models take for GPUs, it is one op of the traced
graph. Inductor generates that op by Triton alone. Its derivative in PyTorch 2.13 treats
the tensors of a state as independent of each other, so that a gradient of a state like
Mamba's was 0. With ``combine_mode="generic"`` PyTorch combines pairs of neighbours
(Blelloch, "Prefix sums and their applications", 1990), and all that is left are ops that
kernels and native code have.
"""

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch


def change(module: ModuleType) -> None:
    """Makes associative_scan compose xpu tensors of other ops.

    module: `torch._higher_order_ops.associative_scan`. Its package has a function of the
    same name, which is the module's.
    """
    composed = _composed(module.associative_scan)
    module.associative_scan = composed  # type: ignore[attr-defined]
    package = sys.modules[module.__name__.rpartition(".")[0]]
    package.associative_scan = composed  # type: ignore[attr-defined]


def _composed(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def associative_scan(
        combine_fn: Callable[..., Any],
        xs: Any,
        dim: int,
        reverse: bool = False,
        combine_mode: str = "pointwise",
    ) -> Any:
        leaves = torch.utils._pytree.tree_leaves(xs)
        on_xpu = any(
            isinstance(each, torch.Tensor) and each.device.type == "xpu"
            for each in leaves
        )
        if combine_mode == "pointwise" and on_xpu:
            combine_mode = "generic"
        return before(combine_fn, xs, dim, reverse, combine_mode)

    return associative_scan
