"""fused_cross_entropy: a linear layer and the cross entropy of its results, in chunks of
rows, so that the logits never exist together (Wijmans et al., Cut your losses in
large-vocabulary language models, 2024; Hsu et al., Liger kernel, 2024).

For a row with the logits z, the label y, C classes and the smoothing e,

    loss = log(sum(exp(z))) - (1 - e) * z_y - e * mean(z)
    d loss / d z = softmax(z) - (1 - e) * onehot(y) - e / C

As in Liger, a loss that is one number is computed together with its gradients, chunk by
chunk. The losses of rows (reduction "none") need the gradient of each, so their logits
are computed again in the backward pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from xpurt.fused_ops.definition import (
    cast_under_autocast,
    define,
    define_by_ops,
    differentiable_gradients,
)
from xpurt.fused_ops.operands import (
    computed_in,
    require,
    require_floating,
    require_same_device,
    require_same_type,
    sizes,
)

_OP = "fused_cross_entropy"
_REDUCTIONS = ("none", "mean", "sum")
# Of a chunk whose size is chosen here: its logits, and its rows. Products of fewer rows are
# slow.
_LOGITS: Final = 1 << 23
_LEAST_ROWS: Final = 64
_OPERANDS = (
    "Tensor hidden, Tensor weight, Tensor target, Tensor? bias, int ignore_index, "
    "str reduction, float label_smoothing, int chunk_rows"
)


@dataclass(frozen=True, slots=True, eq=False)
class _Loss:
    """The arguments of the op. Raises ValueError or TypeError if they do not fit."""

    hidden: Tensor
    weight: Tensor
    target: Tensor
    bias: Tensor | None
    ignore_index: int
    reduction: str
    smoothing: float
    chunk_rows: int

    def __post_init__(self) -> None:
        hidden, weight, target = self.hidden, self.weight, self.target
        require_floating(_OP, "hidden", hidden)
        require_same_device(
            _OP, hidden=hidden, weight=weight, target=target, bias=self.bias
        )
        require_same_type(_OP, hidden=hidden, weight=weight, bias=self.bias)
        require(
            hidden.dim() == 2
            and weight.dim() == 2
            and hidden.shape[1] == weight.shape[1],
            f"{_OP} has hidden (rows, in) and a weight (classes, in); found hidden "
            f"{sizes(hidden)} and a weight {sizes(weight)}. Flatten a batch of sequences",
        )
        require(
            target.dim() == 1 and target.shape[0] == hidden.shape[0],
            f"{_OP} has a label per row of hidden {sizes(hidden)}; found a target "
            f"{sizes(target)}",
        )
        if target.dtype not in (torch.int32, torch.int64):
            raise TypeError(
                f"{_OP} has labels of torch.int64 or torch.int32; found {target.dtype}. "
                "Probabilities of classes are for torch.nn.functional.cross_entropy"
            )
        bias = self.bias
        require(
            bias is None or (bias.dim() == 1 and bias.shape[0] == weight.shape[0]),
            f"{_OP} with a weight {sizes(weight)} adds a bias [{weight.shape[0]}]; found "
            f"{'' if bias is None else sizes(bias)}",
        )
        require(
            self.reduction in _REDUCTIONS,
            f'{_OP} has the reductions {", ".join(_REDUCTIONS)}; found "{self.reduction}"',
        )
        require(
            0 <= self.smoothing <= 1,
            f"{_OP} has a label_smoothing from 0 to 1; found {self.smoothing}",
        )
        require(
            self.chunk_rows >= 0,
            f"{_OP} has chunks of a positive number of rows, or chooses it if it is 0; "
            f"found {self.chunk_rows}",
        )

    @property
    def dtype(self) -> torch.dtype:
        """Of the losses and of sums."""
        return computed_in(self.hidden.dtype)

    @property
    def rows_of_chunk(self) -> int:
        chosen = max(_LEAST_ROWS, _LOGITS // max(self.weight.shape[0], 1))
        return self.chunk_rows or chosen

    def chunks(self) -> Iterator[slice]:
        rows = self.hidden.shape[0]
        for first in range(0, rows, self.rows_of_chunk):
            yield slice(first, min(rows, first + self.rows_of_chunk))

    def is_counted(self) -> Tensor:
        return self.target != self.ignore_index

    def check_labels(self) -> None:
        """Raises IndexError for a label that is no class. On xpu the ops that read the
        labels raise it, at the next wait."""
        if self.target.is_cpu:
            classes, counted = self.weight.shape[0], self.target[self.is_counted()]
            wrong = counted[(counted < 0) | (counted >= classes)]
            if wrong.numel():
                raise IndexError(
                    f"{_OP} has labels from 0 to {classes - 1}, or {self.ignore_index} "
                    f"for a row to ignore; found {int(wrong[0])}"
                )

    def scale(self) -> Tensor:
        """The share of a row in the loss, if that is one number: (rows)."""
        counted = self.is_counted().to(self.dtype)
        if self.reduction == "mean":
            counted = counted / counted.sum().clamp(min=1)
        return counted

    def logs(self, rows: slice) -> Tensor:
        """The logarithms of the probabilities, (rows, classes)."""
        logits = F.linear(self.hidden[rows], self.weight, self.bias)
        return torch.log_softmax(logits, 1, dtype=self.dtype)

    def labels(self, rows: slice) -> Tensor:
        """(rows, 1). An ignored row has any class."""
        target = self.target[rows].long()
        return target.masked_fill(target == self.ignore_index, 0).unsqueeze(1)

    def losses(self, logs: Tensor, labels: Tensor) -> Tensor:
        """(rows) of a chunk; logs: of the probabilities."""
        found = -logs.gather(1, labels).squeeze(1)
        if self.smoothing:
            found = found * (1 - self.smoothing) - logs.mean(1) * self.smoothing
        return found

    def slopes(self, logs: Tensor, labels: Tensor, scale: Tensor) -> Tensor:
        """The gradient of the logits, in the place of the logarithms of probabilities;
        scale: the gradients of the losses, (rows)."""
        slopes, right = logs.exp_(), logs.new_full(labels.shape, self.smoothing - 1)
        slopes.scatter_add_(1, labels, right)
        if self.smoothing:
            slopes.sub_(self.smoothing / self.weight.shape[0])
        return slopes.mul_(scale.unsqueeze(1)).to(self.hidden.dtype)


class _Gradients:
    """The gradients of hidden, weight and bias, chunk by chunk. One that is not wanted
    has no elements. Those of weight and bias are summed in the type of the losses."""

    def __init__(self, loss: _Loss, wanted: Sequence[bool]) -> None:
        self._loss, self._wanted = loss, wanted
        hidden, weight = loss.hidden, loss.weight
        self._hidden = _zeros(hidden.shape, hidden, hidden.dtype, wanted[0])
        self._weight = _zeros(weight.shape, hidden, loss.dtype, wanted[1])
        self._bias = _zeros(weight.shape[:1], hidden, loss.dtype, wanted[2])

    def add(self, rows: slice, slopes: Tensor) -> None:
        loss, wanted = self._loss, self._wanted
        if wanted[0]:
            self._hidden[rows] = slopes @ loss.weight
        if wanted[1]:
            hidden = loss.hidden[rows]
            if self._weight.dtype == slopes.dtype:
                self._weight.addmm_(slopes.t(), hidden)
            else:
                self._weight.add_(slopes.t() @ hidden)
        if wanted[2]:
            self._bias.add_(slopes.sum(0, dtype=self._bias.dtype))

    def found(self) -> tuple[Tensor, Tensor, Tensor]:
        dtype = self._loss.hidden.dtype
        return self._hidden, self._weight.to(dtype), self._bias.to(dtype)


def _zeros(
    shape: Sequence[int], like: Tensor, dtype: torch.dtype, wanted: bool
) -> Tensor:
    return torch.zeros(shape if wanted else (0,), dtype=dtype, device=like.device)


def _forward(
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
    chunk_rows: int,
    wanted: Sequence[bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss, and the gradients of one number."""
    loss = _Loss(
        hidden, weight, target, bias, ignore_index, reduction, smoothing, chunk_rows
    )
    loss.check_labels()
    wanted = wanted if reduction != "none" else [False] * 3
    gradients, scale = _Gradients(loss, wanted), loss.scale()
    parts = [torch.zeros(0, dtype=loss.dtype, device=hidden.device)]
    for rows in loss.chunks():
        logs, labels = loss.logs(rows), loss.labels(rows)
        parts.append(loss.losses(logs, labels))
        if any(wanted):
            gradients.add(rows, loss.slopes(logs, labels, scale[rows]))
    losses = torch.cat(parts)
    losses = losses.where(loss.is_counted(), 0)
    if reduction == "mean":
        losses = losses.sum() / loss.is_counted().sum()
    elif reduction == "sum":
        losses = losses.sum()
    return losses, *gradients.found()


def _forward_fake(*arguments: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    *operands, wanted = arguments
    loss = _Loss(*operands)
    if loss.reduction == "none":
        wanted = [False] * 3
    shape = loss.target.shape if loss.reduction == "none" else ()
    made = torch.empty(shape, dtype=loss.dtype, device=loss.hidden.device)
    return made, *_gradients_fake(None, *operands, wanted)


def _gradients(grad: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """From the gradients of the losses of rows, (rows)."""
    *operands, wanted = arguments
    loss = _Loss(*operands)
    gradients = _Gradients(loss, wanted)
    scale = grad.to(loss.dtype).where(loss.is_counted(), 0)
    for rows in loss.chunks():
        slopes = loss.slopes(loss.logs(rows), loss.labels(rows), scale[rows])
        gradients.add(rows, slopes)
    return gradients.found()


def _gradients_fake(
    grad: Tensor | None, *arguments: Any
) -> tuple[Tensor, Tensor, Tensor]:
    *operands, wanted = arguments
    loss = _Loss(*operands)
    shapes = loss.hidden.shape, loss.weight.shape, loss.weight.shape[:1]
    to_hidden, to_weight, to_bias = (
        loss.hidden.new_empty(shape if each else (0,))
        for shape, each in zip(shapes, wanted, strict=True)
    )
    return to_hidden, to_weight, to_bias


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    hidden, weight, target, bias, *ctx.rest, ctx.wanted = inputs
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(hidden, weight, target, bias, *output[1:])


def _gradient(ctx: Any, grad: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
    hidden, weight, target, bias, *found = ctx.saved_tensors
    rest, wanted = ctx.rest, ctx.wanted
    if grad is None:
        made: Sequence[Tensor | None] = (None,) * 3
    elif torch.is_grad_enabled():
        made = differentiable_gradients(
            lambda h, w, b: _whole(h, w, target, b, *rest),
            (hidden, weight, bias),
            (grad,),
        )
    elif rest[1] == "none":
        made = torch.ops.xpurt.fused_cross_entropy_backward(
            grad, hidden, weight, target, bias, *rest, wanted
        )
    else:
        made = [(each * grad).to(each.dtype) for each in found]
    to_hidden, to_weight, to_bias = (
        each if needed else None for each, needed in zip(made, wanted, strict=True)
    )
    return to_hidden, to_weight, None, to_bias, *[None] * 5


def _whole(
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None,
    ignore_index: int,
    reduction: str,
    smoothing: float,
    chunk_rows: int,
) -> Tensor:
    """The plain composition, with whole logits."""
    return F.cross_entropy(
        F.linear(hidden, weight, bias).to(computed_in(hidden.dtype)),
        target.long(),
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=smoothing,
    )


def _loss(
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    chunk_rows: int = 0,
) -> Tensor:
    wanted = [
        torch.is_grad_enabled() and each is not None and each.requires_grad
        for each in (hidden, weight, bias)
    ]
    made: Tensor = torch.ops.xpurt.fused_cross_entropy_forward(
        hidden, weight, target, bias, ignore_index, reduction, label_smoothing,
        chunk_rows, wanted,
    )[0]  # fmt: skip
    return made


def define_op() -> None:
    define_by_ops(
        f"{_OP}(Tensor hidden, Tensor weight, Tensor target, Tensor? bias=None, "
        "int ignore_index=-100, str reduction='mean', float label_smoothing=0.0, "
        "int chunk_rows=0) -> Tensor",
        _loss,
    )
    define(
        f"{_OP}_forward({_OPERANDS}, bool[3] wanted) -> (Tensor, Tensor, Tensor, Tensor)",
        cpu=_forward,
        xpu=_forward,
        fake=_forward_fake,
        save=_save,
        gradient=_gradient,
    )
    define(
        f"{_OP}_backward(Tensor grad, {_OPERANDS}, bool[3] wanted) "
        "-> (Tensor, Tensor, Tensor)",
        cpu=_gradients,
        xpu=_gradients,
        fake=_gradients_fake,
    )
    cast_under_autocast(_OP, (0, 1, 3))
