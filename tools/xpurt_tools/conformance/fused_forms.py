"""Fused ops beside the modules that they stand for.

`rotary_embedding` and `paged_attention` have no module in PyTorch's database:
tests/fused_ops has them.
"""

from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.functional.activations import FUNCTIONS, Activation
from xpurt_tools.conformance.check_module import Made
from xpurt_tools.conformance.programs import norm_after, result_of_one

_ops: Any = torch.ops.xpurt

ACTIVATIONS: Final = {
    name: Activation(name)
    for name, function in FUNCTIONS.items()
    if function.trained is not None
}


class Fused(nn.Module):
    """A program with a module, as eager mode runs it and by a fused op."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module: Any = module

    def fused(self, *args: Any) -> Any:
        raise NotImplementedError


class Linear(Fused):
    def __init__(self, module: nn.Module, activation: str) -> None:
        super().__init__(module)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return ACTIVATIONS[self.activation](self.module(x))

    def fused(self, x: Tensor) -> Any:
        given = self.module.weight, self.module.bias, self.activation
        return _ops.linear_activation(x, *given)


class Convolution(Fused):
    """With the norm's running statistics also in training."""

    def __init__(self, module: nn.Module, norm: nn.Module, activation: str) -> None:
        super().__init__(module)
        self.norm: Any = norm
        self.activation = activation

    def train(self, mode: bool = True) -> "Convolution":
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        return ACTIVATIONS[self.activation](self.norm(self.module(x)))

    def fused(self, x: Tensor) -> Any:
        layer, norm = self.module, self.norm
        return _ops.conv_bn_activation(
            x,
            layer.weight,
            layer.bias,
            norm.weight,
            norm.bias,
            norm.running_mean,
            norm.running_var,
            norm.eps,
            layer.stride,
            layer.padding,
            layer.dilation,
            layer.groups,
            self.activation,
        )


class RmsNorm(Fused):
    def forward(self, x: Tensor) -> Any:
        added = x + x.cos()
        return self.module(added), added

    def fused(self, x: Tensor) -> Any:
        eps = self.module.eps
        eps = torch.finfo(x.dtype).eps if eps is None else eps
        return _ops.rms_norm_add(x, x.cos(), self.module.weight, eps)


class SwiGlu(Fused):
    def forward(self, x: Tensor) -> Any:
        return self.module(x) * x.cos()

    def fused(self, x: Tensor) -> Any:
        return _ops.swiglu(x, x.cos())


class CrossEntropy(Fused):
    """Of logits that a product makes of the sample's."""

    def __init__(self, module: nn.Module, classes: int, dtype: torch.dtype) -> None:
        super().__init__(module)
        numbers = torch.arange(classes * classes).view(classes, classes)
        self.weight = nn.Parameter(torch.cos(numbers.double()).to(dtype))

    def forward(self, hidden: Tensor, target: Tensor) -> Any:
        logits = F.linear(hidden, self.weight)
        return self.module(logits.to(torch.float32), target)

    def fused(self, hidden: Tensor, target: Tensor) -> Any:
        loss = self.module
        smoothing = loss.label_smoothing
        return _ops.fused_cross_entropy(
            hidden,
            self.weight,
            target,
            None,
            loss.ignore_index,
            loss.reduction,
            smoothing,
        )


def fused_forms(made: Made) -> Iterator[tuple[str, Made]]:
    """The programs that there is a fused op for."""
    module, args, kwargs = made
    for name, program in _forms(module, made):
        yield name, (program.train(module.training), args, kwargs)


def _forms(module: nn.Module, made: Made) -> Iterator[tuple[str, Fused]]:
    _, args, kwargs = made
    if type(module) is nn.CrossEntropyLoss and not kwargs:
        logits, target = args
        if module.weight is None and logits.dim() == 2 and target.dim() == 1:
            yield "call", CrossEntropy(module, logits.shape[1], logits.dtype)
    result = result_of_one(made)
    if result is None:
        return
    if type(module) is nn.RMSNorm:
        if module.weight is not None and module.weight.dim() == 1:
            yield "call", RmsNorm(module)
    elif type(module) is nn.SiLU and not module.inplace and result.dim():
        yield "call", SwiGlu(module)
    elif type(module) is nn.Linear:
        for name in ACTIVATIONS:
            yield "call" if name == "none" else name, Linear(module, name)
    elif type(module) in (nn.Conv1d, nn.Conv2d, nn.Conv3d):
        yield from _of_convolution(module, result)


def _of_convolution(module: Any, result: Tensor) -> Iterator[tuple[str, Fused]]:
    norm = norm_after(module, result)
    plain = module.padding_mode == "zeros" and not isinstance(module.padding, str)
    if norm is not None and plain:
        for name in ACTIVATIONS:
            form = Convolution(module, norm, name)
            yield "call" if name == "none" else name, form
