"""Each fused op with operands, and the composition of PyTorch's ops that it stands for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ops = torch.ops.xpurt

Make = Callable[..., Tensor]  # make(*sizes): random numbers

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda z: z,
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"),
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "hardswish": F.hardswish,
}


@dataclass(frozen=True)
class Case:
    """name: of the case. op: in `torch.ops.xpurt`. plain: with the arguments of the op.
    differentiable: positions of the arguments that have gradients."""

    name: str
    op: str
    operands: Callable[[Make], Sequence[Any]]
    plain: Callable[..., Any]
    differentiable: tuple[int, ...]

    def __str__(self) -> str:
        return self.name

    def fused(self, *arguments: Any) -> Any:
        return getattr(ops, self.op)(*arguments)

    def made(self, dtype: torch.dtype, seed: int = 0) -> list[Any]:
        """The arguments, on the CPU. The differentiable ones require gradients."""
        generator = torch.Generator().manual_seed(seed)

        def make(*sizes: int) -> Tensor:
            return torch.randn(sizes, generator=generator, dtype=torch.float64).to(
                dtype
            )

        found = list(self.operands(make))
        for position in self.differentiable:
            found[position].requires_grad_()
        return found


def on(device: str, arguments: Sequence[Any]) -> list[Any]:
    """Copies on a device, which require gradients where the given ones do."""
    return [
        each.detach().to(device, copy=True).requires_grad_(each.requires_grad)
        if isinstance(each, Tensor)
        else each
        for each in arguments
    ]


def transposed(each: Any) -> Any:
    """A tensor with its dimensions in reversed order in memory."""
    if not isinstance(each, Tensor):
        return each
    order = list(reversed(range(each.dim())))
    moved = each.detach().permute(order).contiguous().permute(order)
    return moved.requires_grad_(each.requires_grad)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    return ACTIVATIONS[activation](F.linear(x, weight, bias))


def convolution(
    x: Tensor, weight: Tensor, bias: Tensor | None, bn_weight: Tensor | None,
    bn_bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, stride: Any,
    padding: Any, dilation: Any, groups: int, activation: str,
) -> Tensor:  # fmt: skip
    function: Any = (F.conv1d, F.conv2d, F.conv3d)[x.dim() - 3]
    made = function(x, weight, bias, stride, padding, dilation, groups)
    made = F.batch_norm(made, mean, var, bn_weight, bn_bias, False, 0.0, eps)
    return ACTIVATIONS[activation](made)


def rms_norm_add(
    x: Tensor, residual: Tensor | None, weight: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    added = x + 0 if residual is None else x + residual
    normed = F.rms_norm(added.double(), weight.shape, weight.double(), eps)
    return normed.to(added.dtype), added


def rotary(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, interleaved: bool
) -> tuple[Tensor, ...]:
    """By complex numbers, unlike the ops."""
    made = []
    for x in (q, k):
        rotated = x[..., : 2 * cos.shape[-1]].double()
        pairs = (
            rotated.unflatten(-1, (-1, 2))
            if interleaved
            else rotated.unflatten(-1, (2, -1)).transpose(-1, -2)
        )
        turned = torch.view_as_complex(pairs.contiguous())
        turned = turned * torch.complex(cos.double(), sin.double())
        parts = torch.view_as_real(turned)
        whole = parts if interleaved else parts.transpose(-1, -2)
        rest = x[..., 2 * cos.shape[-1] :]
        made.append(torch.cat([whole.flatten(-2).to(x.dtype), rest], -1))
    return tuple(made)


def cross_entropy(
    hidden: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None,
    ignore_index: int, reduction: str, smoothing: float, chunk_rows: int,
) -> Tensor:  # fmt: skip
    dtype = hidden.dtype if hidden.dtype == torch.float64 else torch.float32
    return F.cross_entropy(
        F.linear(hidden, weight, bias).to(dtype),
        target,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=smoothing,
    )


def paged(
    query: Tensor, keys: Tensor, values: Tensor, tables: Tensor, lengths: Tensor,
    scale: float,
) -> Tensor:  # fmt: skip
    """A softmax over the tokens of each sequence, one by one."""
    made = torch.zeros_like(query)
    shared = query.shape[1] // keys.shape[2]
    for b, length in enumerate(lengths.tolist()):
        places = [
            (int(tables[b, t // keys.shape[1]]), t % keys.shape[1])
            for t in range(length)
        ]
        for h in range(query.shape[1] if length else 0):
            k = torch.stack([keys[n, t, h // shared] for n, t in places]).double()
            v = torch.stack([values[n, t, h // shared] for n, t in places]).double()
            weights = torch.softmax(k @ query[b, h].double() * scale, 0)
            made[b, h] = (weights @ v).to(query.dtype)
    return made


def _convolution_operands(axes: int, activation: str, plain: bool = False) -> Any:
    def operands(make: Make) -> Sequence[Any]:
        channels = None if plain else make(6)
        return (
            make(2, 4, *[5] * axes), make(6, 2, *[3] * axes), channels,
            None if plain else make(6), None if plain else make(6), make(6),
            make(6).square() + 0.5, 1e-3, [2], [1], [1], 2, activation,
        )  # fmt: skip

    return operands


def _loss_operands(reduction: str, smoothing: float, bias: bool) -> Any:
    def operands(make: Make) -> Sequence[Any]:
        target = torch.tensor([0, 6, -100, 3, 3, 1, -100, 5])
        return (
            make(8, 5), make(7, 5), target, make(7) if bias else None, -100, reduction,
            smoothing, 3,
        )  # fmt: skip

    return operands


def _angles(make: Make, *sizes: int) -> tuple[Tensor, Tensor]:
    angles = make(*sizes)
    return angles.cos(), angles.sin()


CASES = (
    *(
        Case(
            f"linear_{name}",
            "linear_activation",
            lambda make, name=name: (make(2, 3, 8), make(6, 8), make(6), name),
            linear,
            (0, 1, 2),
        )
        for name in ACTIVATIONS
    ),
    Case(
        "linear_without_bias",
        "linear_activation",
        lambda make: (make(8), make(6, 8), None, "silu"),
        linear,
        (0, 1),
    ),
    *(
        Case(
            f"convolution_{axes}d_{activation}",
            "conv_bn_activation",
            _convolution_operands(axes, activation),
            convolution,
            (0, 1, 2, 3, 4),
        )
        for axes, activation in ((1, "silu"), (2, "relu"), (2, "gelu"), (3, "none"))
    ),
    Case(
        "convolution_of_other_windows_per_axis",
        "conv_bn_activation",
        lambda make: (
            make(2, 4, 9, 8), make(6, 4, 3, 2), None, None, make(6), make(6),
            make(6).square() + 0.5, 1e-3, [2, 1], [0, 1], [1, 2], 1, "none",
        ),
        convolution,
        (0, 1, 4),
    ),
    Case(
        "convolution_without_parameters",
        "conv_bn_activation",
        _convolution_operands(2, "sigmoid", plain=True),
        convolution,
        (0, 1),
    ),
    *(
        Case(
            f"rotary_{'adjacent' if interleaved else 'halves'}",
            "rotary_embedding",
            lambda make, interleaved=interleaved: (
                make(2, 5, 4, 8), make(2, 5, 2, 8), *_angles(make, 5, 1, 3), interleaved,
            ),
            rotary,
            (0, 1, 2, 3),
        )
        for interleaved in (False, True)
    ),
    Case(
        "rms_norm_add",
        "rms_norm_add",
        lambda make: (make(2, 3, 37), make(2, 3, 37), make(37), 1e-5),
        rms_norm_add,
        (0, 1, 2),
    ),
    Case(
        "rms_norm_without_residual",
        "rms_norm_add",
        lambda make: (make(40, 8), None, make(8), 1e-5),
        rms_norm_add,
        (0, 2),
    ),
    *(
        Case(
            name,
            "swiglu",
            lambda make, sizes=sizes: (make(*sizes), make(*sizes)),
            lambda gate, up: F.silu(gate) * up,
            (0, 1),
        )
        for name, sizes in (("swiglu", (2, 3, 8)), ("swiglu_whole_rows", (16, 1024)))
    ),
    *(
        Case(
            f"cross_entropy_{reduction}{'_smoothed' if smoothing else ''}",
            "fused_cross_entropy",
            _loss_operands(reduction, smoothing, bias),
            cross_entropy,
            (0, 1, 3) if bias else (0, 1),
        )
        for reduction, smoothing, bias in (
            ("mean", 0.0, True),
            ("mean", 0.2, False),
            ("sum", 0.2, True),
            ("none", 0.2, True),
        )
    ),
    *(
        Case(
            f"paged_attention_{heads}_heads_{tables}_{lengths}",
            "paged_attention",
            lambda make, heads=heads, tables=tables, lengths=lengths: (
                make(3, heads, 8), make(7, 4, 2, 8), make(7, 4, 2, 8),
                torch.tensor([[0, 3, 6], [5, 1, 0], [2, 2, 9]], dtype=tables),
                torch.tensor([9, 3, 0], dtype=lengths), 0.3,
            ),
            paged,
            (),
        )
        for heads, tables, lengths in (
            (2, torch.int64, torch.int64),
            (6, torch.int64, torch.int64),
            (6, torch.int32, torch.int32),
            (6, torch.int32, torch.int64),
            (6, torch.int64, torch.int32),
        )
    ),
)  # fmt: skip

# One case of each op.
OPS = tuple({case.op: case for case in reversed(CASES)}.values())
