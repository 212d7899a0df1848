"""The results of ops while a graph is traced, where PyTorch describes them to no compiler,
or describes others.

Without it the compiler calls the op itself, which it cannot with sizes that change.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch._subclasses.fake_impls import op_implementations_dict, register_op_impl

from xpurt.compiler.renamed import devices

_ATEN: Final = torch.ops.aten

Results = Tensor | tuple[Tensor | None, ...]


def define() -> None:
    """Describes the ops for xpu tensors. A second call does nothing."""
    for op, results in _RESULTS.items():
        if op not in op_implementations_dict:
            register_op_impl(op)(_of_xpu(results))


def _of_xpu(results: Callable[..., Results]) -> Callable[..., Any]:
    def of_xpu(fake_mode: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        if not devices.is_ours(args[0].device):
            return NotImplemented  # PyTorch's own function is next
        with fake_mode:
            return results(*args, **kwargs)

    return of_xpu


def _cell(
    input_gates: Tensor,
    hidden_gates: Tensor,
    hx: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> Results:
    """The next state, and a workspace of [batch, 5 * width]."""
    batch, width = hx.shape
    return hx.new_empty(batch, width), hx.new_empty(batch, 5 * width)


def _cell_backward(upstream: Tensor, workspace: Tensor, has_bias: bool) -> Results:
    """The gradients of both gates, of the state and of both biases."""
    batch, width = upstream.shape
    gates = [upstream.new_empty(batch, 3 * width) for _ in range(2)]
    biases = [upstream.new_empty(3 * width) if has_bias else None for _ in range(2)]
    return *gates, upstream.new_empty(batch, width), *biases


def _statistics(images: Tensor, *_: Any, **__: Any) -> Results:
    """Two numbers per channel, in float32 for smaller types."""
    return _per_channel(images), _per_channel(images)


def _like_images(images: Tensor, *_: Any, **__: Any) -> Results:
    return torch.empty_like(images)


def _sums(
    upstream: Tensor,
    images: Tensor,
    mean: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    of_input: bool,
    of_weight: bool,
    of_bias: bool,
) -> Results:
    wanted = (of_input, of_input, of_weight, of_bias)
    return tuple(_per_channel(images) if each else None for each in wanted)


def _attention_backward(
    upstream: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    *others: Any,
    shared_storage_dqdkdv: bool = False,
    **_: Any,
) -> Any:
    """The gradients of query, key and value, and none of a bias, where PyTorch describes
    one."""
    if bias is not None:
        return NotImplemented
    if shared_storage_dqdkdv:
        *sizes, heads, width = query.shape
        together = query.new_empty(*sizes, 3, heads, width)
        return *(together.select(-3, i) for i in range(3)), None
    return *(each.new_empty(each.shape) for each in (query, key, value)), None


def _per_channel(images: Tensor) -> Tensor:
    is_small = images.dtype in (torch.float16, torch.bfloat16)
    dtype = torch.float32 if is_small else images.dtype
    return images.new_empty(images.shape[1], dtype=dtype)


_RESULTS: Final[dict[Any, Callable[..., Results]]] = {
    _ATEN._efficient_attention_backward.default: _attention_backward,
    _ATEN._thnn_fused_gru_cell.default: _cell,
    _ATEN._thnn_fused_gru_cell_backward.default: _cell_backward,
    _ATEN.batch_norm_stats.default: _statistics,
    _ATEN.batch_norm_gather_stats_with_counts.default: _statistics,
    _ATEN.batch_norm_elemt.default: _like_images,
    _ATEN.batch_norm_backward_reduce.default: _sums,
    _ATEN.batch_norm_backward_elemt.default: _like_images,
}
