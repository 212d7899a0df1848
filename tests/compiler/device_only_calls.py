"""A call of each op that xpu has a kernel for and the CPU has none, by the op's name."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Call = tuple[Any, ...]  # the arguments


def _made(*shape: int) -> Tensor:
    return torch.randn(shape, device="xpu")


def _gates(count: int) -> Call:
    width = count * 4
    state = _made(3, 4)
    return _made(3, width), _made(3, width), state, _made(width), _made(width)


def _lstm_backward() -> Call:
    operands = _gates(4)
    _, cy, workspace = aten._thnn_fused_lstm_cell(*operands)
    return _made(3, 4), _made(3, 4), operands[2], cy, workspace, True


def _gru_backward() -> Call:
    workspace = aten._thnn_fused_gru_cell(*_gates(3))[1]
    return _made(3, 4), workspace, True


def _images() -> Tensor:
    return _made(4, 3, 2, 2)


def _statistics() -> tuple[Tensor, Tensor]:
    return _made(3), _made(3).abs() + 0.5


def _attended() -> tuple[Tensor, Tensor, Tensor]:
    return _made(2, 5, 2, 8), _made(2, 5, 2, 8), _made(2, 5, 2, 8)


def _flash() -> Call:
    return *_attended(), None, None, 5, 5, 0.0, True, False


def _flash_backward() -> Call:
    operands = _flash()
    out, sums, seed, unused, _ = aten._flash_attention_forward(*operands)
    query, key, value = operands[:3]
    return (
        _made(*out.shape), query, key, value, out, sums, None, None, 5, 5, 0.0, True,
        seed, unused,
    )  # fmt: skip


def _packed() -> tuple[Tensor, ...]:
    ends = torch.tensor([0, 2, 5], dtype=torch.int32, device="xpu")
    return _made(5, 2, 8), _made(5, 2, 8), _made(5, 2, 8), ends, ends


def _flash_in_place() -> Call:
    query, key, value, starts, ends = _packed()
    return _made(5, 2, 8), query, key, value, starts, ends, 3, 3, 0.0, False, False


def _efficient() -> Call:
    return *_attended(), None, None, None, None, None, 0.0, 1, True


def _efficient_backward() -> Call:
    operands = _efficient()
    out, sums, seed, offset, _, _ = aten._efficient_attention_forward(*operands)
    query, key, value = operands[:3]
    return (
        _made(*out.shape), query, key, value, None, out, None, None, 5, 5, sums, 0.0,
        seed, offset, 1, False,
    )  # fmt: skip


def _convolution() -> Call:
    weight, bias = _made(2, 3, 2, 2), _made(2)
    return _images(), weight, bias, [1, 1], [1, 1], [1, 1], False, [0, 0], 1


def _convolution_backward() -> Call:
    x, weight, _, *options = _convolution()
    return _made(4, 2, 3, 3), x, weight, *options, [True, True, True]


def _gathered() -> Call:
    means, scales = torch.stack([_made(3)] * 2), torch.stack([_made(3).abs()] * 2)
    counts = torch.tensor([4.0, 6.0], device="xpu")
    return _images(), means, scales, None, None, 0.1, 1e-5, counts


def _reduced() -> Call:
    return _images(), _images(), *_statistics(), _made(3), True, True, True


def _elements() -> Call:
    count = torch.tensor([16], dtype=torch.int32, device="xpu")
    statistics = _statistics()
    return _images(), _images(), *statistics, _made(3), _made(3), _made(3), count


CALLS: dict[str, Callable[[], Call]] = {
    "_efficient_attention_backward": _efficient_backward,
    "_efficient_attention_forward": _efficient,
    "_flash_attention_backward": _flash_backward,
    "_flash_attention_forward": _flash,
    "_flash_attention_forward_no_dropout_inplace": _flash_in_place,
    "_fused_dropout": lambda: (_made(4, 4), 0.5),
    "_thnn_fused_gru_cell": lambda: _gates(3),
    "_thnn_fused_gru_cell_backward": _gru_backward,
    "_thnn_fused_lstm_cell": lambda: _gates(4),
    "_thnn_fused_lstm_cell_backward_impl": _lstm_backward,
    "batch_norm_backward_elemt": _elements,
    "batch_norm_backward_reduce": _reduced,
    "batch_norm_elemt": lambda: (_images(), _made(3), _made(3), *_statistics(), 1e-5),
    "batch_norm_gather_stats_with_counts": _gathered,
    "batch_norm_stats": lambda: (_images(), 1e-5),
    "convolution_backward_overrideable": _convolution_backward,
    "convolution_overrideable": _convolution,
    "record_stream": lambda: (_made(4), torch.xpu.Stream()),
}
