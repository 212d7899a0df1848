"""A call of every op that has a kernel for strided nested CPU tensors."""

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


class Make:
    """Puts tensors on a device, and keeps the nested ones that require a gradient."""

    def __init__(self, device: torch.device | str, grads: bool = False) -> None:
        self.device = device
        self.grads = grads
        self.leaves: list[torch.Tensor] = []

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.device)


Call = Callable[[Make], Any]

_SHAPES = ((2, 4), (3, 4))


def nested(
    make: Make, *shapes: tuple[int, ...], seed: int = 0, dtype: Any = None
) -> torch.Tensor:
    """A strided nested leaf with parts of these shapes."""
    generator = torch.Generator().manual_seed(seed)
    parts = [
        make(torch.randn(shape, generator=generator)) for shape in shapes or _SHAPES
    ]
    made = torch.nested.nested_tensor(parts, layout=torch.strided)
    if make.grads:
        make.leaves.append(made.requires_grad_())
    return made if dtype is None else made.to(dtype)


def dense(make: Make, *shape: int, seed: int = 7) -> torch.Tensor:
    return make(torch.randn(shape, generator=torch.Generator().manual_seed(seed)))


def _unary(name: str) -> Call:
    op = getattr(aten, name)
    return lambda make: op(nested(make))


def _in_place(name: str) -> Call:
    def call(make: Make) -> torch.Tensor:
        made = nested(make)
        result = getattr(aten, name)(made)
        assert result.data_ptr() == made.data_ptr()
        return made

    return call


def _qkv(make: Make, seed: int) -> torch.Tensor:
    return nested(make, (2, 3, 4), (2, 5, 4), seed=seed)


def _attention_weights(make: Make) -> tuple[torch.Tensor, ...]:
    return (
        dense(make, 24, 8, seed=1),
        dense(make, 24, seed=2),
        dense(make, 8, 8, seed=3),
        dense(make, 8, seed=4),
    )


def _written(call: Callable[[torch.Tensor, Make], Any]) -> Call:
    def run(make: Make) -> torch.Tensor:
        made = nested(make)
        call(made, make)
        return made

    return run


def _zeros_of(shapes: tuple[tuple[int, ...], ...], make: Make) -> torch.Tensor:
    return torch.nested.nested_tensor([make(torch.zeros(s)) for s in shapes])


_UNARY = (
    "sgn silu gelu isinf sin relu cos isneginf isnan neg abs tanh isposinf sqrt "
    "logical_not alias detach clone"
)
_IN_PLACE = "zero_ relu_ silu_ neg_ tanh_ sgn_ gelu_ abs_ logical_not_"

CALLS: dict[str, Call] = {
    **{f"aten::{name}": _unary(name) for name in _UNARY.split()},
    **{f"aten::{name}": _in_place(name) for name in _IN_PLACE.split()},
    "aten::ge.Scalar": lambda m: aten.ge(nested(m), 0.1),
    "aten::gt.Scalar": lambda m: aten.gt(nested(m), 0.1),
    "aten::eq.Scalar": lambda m: aten.eq(nested(m), 0.0),
    "aten::eq.Tensor": lambda m: aten.eq(nested(m), nested(m)),
    "aten::_nested_from_padded_and_nested_example": lambda m: (
        aten._nested_from_padded_and_nested_example(dense(m, 2, 3, 4), nested(m))
    ),
    "aten::unbind.int": lambda m: aten.unbind(nested(m)),
    "aten::fill_.Scalar": _written(lambda n, m: n.fill_(2.5)),
    "aten::fill_.Tensor": _written(lambda n, m: n.fill_(m(torch.tensor(2.5)))),
    "aten::squeeze": lambda m: aten.squeeze(nested(m, (1, 4), (1, 4))),
    "aten::squeeze.dim": lambda m: aten.squeeze(nested(m, (2, 1, 4), (3, 1, 4)), 2),
    "aten::squeeze.dims": lambda m: aten.squeeze(nested(m, (2, 1, 4)), [2]),
    "aten::unsqueeze": lambda m: aten.unsqueeze(nested(m), 2),
    "aten::add_.Tensor": _written(lambda n, m: n.add_(nested(m, seed=1))),
    "aten::mul_.Tensor": _written(lambda n, m: n.mul_(nested(m, seed=1))),
    "aten::mul_.Scalar": _written(lambda n, m: aten.mul_(n, 2.0)),
    "aten::linear": lambda m: aten.linear(nested(m), dense(m, 5, 4), dense(m, 5)),
    "aten::linear_backward": lambda m: aten.linear_backward(
        nested(m), nested(m, (2, 5), (3, 5)), dense(m, 5, 4), [True, True, True]
    ),
    "aten::ones_like": lambda m: aten.ones_like(nested(m)),
    "aten::empty_like": lambda m: aten.empty_like(nested(m)).fill_(1.0),
    "aten::add.Tensor": lambda m: nested(m) + nested(m, seed=1),
    "aten::sub.Tensor": lambda m: nested(m) - nested(m, seed=1),
    "aten::mul.Tensor": lambda m: nested(m) * nested(m, seed=1),
    "aten::mul.Scalar": lambda m: aten.mul(nested(m), 3.0),
    "aten::div.Tensor": lambda m: nested(m) / nested(m, seed=1),
    "aten::div.Scalar": lambda m: aten.div(nested(m), 3.0),
    "aten::_nested_tensor_size": lambda m: aten._nested_tensor_size(nested(m)),
    "aten::_nested_tensor_strides": lambda m: aten._nested_tensor_strides(nested(m)),
    "aten::_nested_tensor_storage_offsets": lambda m: (
        aten._nested_tensor_storage_offsets(nested(m))
    ),
    "aten::to_padded_tensor": lambda m: aten.to_padded_tensor(nested(m), -1.0),
    "aten::embedding": lambda m: aten.embedding(
        dense(m, 6, 3),
        torch.nested.nested_tensor(
            [m(torch.tensor([0, 5])), m(torch.tensor([2, 1, 3]))]
        ),
    ),
    "aten::normal_": _written(lambda n, m: n.normal_(3.0, 0.0)),
    "aten::sum.dim_IntList": lambda m: aten.sum(nested(m), [-1], True),
    "aten::_native_multi_head_attention": lambda m: aten._native_multi_head_attention(
        *(nested(m, (3, 8), (5, 8)),) * 3, 8, 2, *_attention_weights(m), None, False
    )[0],
    "aten::_transformer_encoder_layer_fwd": lambda m: (
        aten._transformer_encoder_layer_fwd(
            nested(m, (3, 8), (5, 8)),
            8,
            2,
            *_attention_weights(m),
            True,
            False,
            1e-5,
            dense(m, 8, seed=5),
            dense(m, 8, seed=6),
            dense(m, 8, seed=7),
            dense(m, 8, seed=8),
            dense(m, 16, 8, seed=9),
            dense(m, 16, seed=10),
            dense(m, 8, 16, seed=11),
            dense(m, 8, seed=12),
        )
    ),
    "aten::_transform_bias_rescale_qkv": lambda m: aten._transform_bias_rescale_qkv(
        nested(m, (3, 24), (5, 24)), dense(m, 24), 2
    ),
    "aten::is_same_size": lambda m: aten.is_same_size(nested(m), nested(m)),
    "aten::_nested_sum_backward": lambda m: aten._nested_sum_backward(
        nested(m, (2, 1), (3, 1)), nested(m), [-1], True
    ),
    "aten::transpose.int": lambda m: aten.transpose(nested(m), 1, 2),
    "aten::value_selecting_reduction_backward": lambda m: (
        aten.value_selecting_reduction_backward(
            nested(m, (1,)), -1, m(torch.zeros(1, 1, dtype=torch.long)), [1, 4], True
        )
    ),
    "aten::_safe_softmax": lambda m: aten._safe_softmax(nested(m), -1),
    "aten::_softmax": lambda m: torch.softmax(nested(m), -1),
    "aten::_softmax_backward_data": lambda m: aten._softmax_backward_data(
        nested(m), torch.softmax(nested(m, seed=1), -1), -1, torch.float32
    ),
    "aten::_nested_tensor_softmax_with_shape": lambda m: (
        aten._nested_tensor_softmax_with_shape(
            dense(m, 2, 2, 3, 3), nested(m, (2, 4), (3, 4))
        )
    ),
    "aten::native_layer_norm": lambda m: aten.native_layer_norm(
        nested(m), [4], dense(m, 4), dense(m, 4, seed=1), 1e-5
    ),
    "aten::native_layer_norm_backward": lambda m: aten.native_layer_norm_backward(
        nested(m, seed=2),
        nested(m),
        [4],
        *aten.native_layer_norm(nested(m), [4], dense(m, 4), dense(m, 4), 1e-5)[1:],
        dense(m, 4),
        dense(m, 4),
        [True, True, True],
    ),
    "aten::is_pinned": lambda m: aten.is_pinned(nested(m)),
    "aten::native_dropout": lambda m: aten.native_dropout(nested(m), 0.0, True),
    "aten::native_dropout_backward": lambda m: aten.native_dropout_backward(
        nested(m), aten.gt(nested(m, seed=1), 0), 2.0
    ),
    "aten::threshold_backward": lambda m: aten.threshold_backward(
        nested(m), nested(m, seed=1), 0.0
    ),
    "aten::silu_backward": lambda m: aten.silu_backward(nested(m), nested(m, seed=1)),
    "aten::gelu_backward": lambda m: aten.gelu_backward(nested(m), nested(m, seed=1)),
    "aten::all.dim": lambda m: aten.all(aten.gt(nested(m), -9.0), -1),
    "aten::matmul": lambda m: aten.matmul(_qkv(m, 0), _qkv(m, 1).transpose(-1, -2)),
    "aten::matmul.out": lambda m: aten.matmul.out(
        nested(m), nested(m, (4, 2), (4, 2)), out=_zeros_of(((2, 2), (3, 2)), m)
    ),
    "aten::matmul_backward": lambda m: aten.matmul_backward(
        nested(m, (2, 2), (3, 2)), nested(m), nested(m, (4, 2), (4, 2)), [True, True]
    ),
    "aten::bmm": lambda m: aten.bmm(nested(m), nested(m, (4, 2), (4, 2))),
    "aten::chunk": lambda m: aten.chunk(nested(m), 2, -1),
    "aten::split_with_sizes": lambda m: aten.split_with_sizes(nested(m), [1, 3], -1),
    "aten::narrow": lambda m: aten.narrow(nested(m), 0, 1, 1),
    "aten::select.int": lambda m: aten.select(nested(m), 0, 1),
    "aten::_nested_select_backward": lambda m: aten._nested_select_backward(
        dense(m, 3, 4), nested(m), 0, 1
    ),
    "aten::copy_": _written(lambda n, m: n.copy_(nested(m, seed=1))),
    "aten::_to_copy": lambda m: nested(m).to(torch.float64),
    "aten::values": lambda m: aten.values(nested(m)),
    "aten::view": lambda m: aten.view(nested(m), [2, -1, 2, 2]),
    "aten::cat": lambda m: aten.cat([nested(m), nested(m, seed=1)], 0),
    "aten::where.self": lambda m: aten.where(
        aten.gt(nested(m), 0), nested(m, seed=1), nested(m, seed=2)
    ),
    "aten::where.self_out": lambda m: aten.where.self_out(
        aten.gt(nested(m), 0),
        nested(m, seed=1),
        nested(m, seed=2),
        out=_zeros_of(_SHAPES, m),
    ),
    "aten::masked_fill.Scalar": lambda m: aten.masked_fill(
        nested(m), aten.gt(nested(m), 0), 9.0
    ),
    "aten::_fused_sdp_choice": lambda m: aten._fused_sdp_choice(
        _qkv(m, 0), _qkv(m, 1), _qkv(m, 2)
    ),
    "aten::_test_autograd_multiple_dispatch.fullcoverage": lambda m: (
        aten._test_autograd_multiple_dispatch(nested(m))
    ),
    "aten::_test_autograd_multiple_dispatch.ntonly": lambda m: (
        aten._test_autograd_multiple_dispatch(nested(m), True)
    ),
}

# What users call, and what it is made of. Composite ops have no kernel to enumerate.
USES: dict[str, Call] = {
    "scaled_dot_product_attention": lambda m: (
        torch.nn.functional.scaled_dot_product_attention(
            _qkv(m, 0), _qkv(m, 1), _qkv(m, 2)
        )
    ),
    "softmax": lambda m: torch.softmax(nested(m), -1),
    "sum": lambda m: nested(m).sum(-1, keepdim=True),
    "dropout": lambda m: torch.dropout(nested(m), 0.0, True),
    "layer_norm": lambda m: torch.nn.functional.layer_norm(nested(m), (4,)),
    "reshape": lambda m: nested(m).reshape(2, -1, 2, 2),
    "zeros_like": lambda m: torch.zeros_like(nested(m)),
    "contiguous": lambda m: nested(m).transpose(1, 2).contiguous(),
    "add_dense": lambda m: nested(m) * dense(m, 1)[0],
    "half": lambda m: nested(m, dtype=torch.float16) * 2,
    "of_views": lambda m: nested(m).transpose(1, 2).unbind()[1] * 2,
    "there_and_back": lambda m: [p * 2 for p in nested(m).unbind()],
    "from_padded": lambda m: torch._nested_tensor_from_mask(
        dense(m, 2, 3, 4), m(torch.tensor([[True, True, False], [True] * 3]))
    ),
    "equal_parts": lambda m: torch.nested.as_nested_tensor([dense(m, 2, 3)] * 2) + 1,
    "buffer": lambda m: torch.nested.nested_tensor([dense(m, 2, 3)]).values(),
    "empty_part": lambda m: nested(m, (0, 4), (3, 4)) * 2,
    "numel": lambda m: nested(m).numel(),
}
