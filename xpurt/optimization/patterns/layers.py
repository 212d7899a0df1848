"""Nodes that are a layer: its operands, if its weight is a parameter of the model."""

from dataclasses import dataclass
from typing import Any, Final

from torch import Tensor
from torch.fx import Node
from torch.nn import functional as F

from xpurt.functional.convolutions import BatchNorm, Geometry
from xpurt.optimization.patterns.graph_calls import arguments, value_of
from xpurt.optimization.patterns.pattern import Parameters

_CONVOLUTIONS: Final[dict[Any, int]] = {F.conv1d: 1, F.conv2d: 2, F.conv3d: 3}
_DROPOUTS: Final = (
    F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout,
    F.feature_alpha_dropout,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LinearNode:
    node: Node
    x: Node
    weight: Node
    bias: Node | None
    outputs: int

    @property
    def operands(self) -> tuple[Node, Node, Node | None]:
        return self.x, self.weight, self.bias


@dataclass(frozen=True, slots=True)
class ConvolutionNode:
    node: Node
    x: Node
    weight: Node
    bias: Node | None
    geometry: Geometry

    @property
    def operands(self) -> tuple[Node, Node, Node | None]:
        return self.x, self.weight, self.bias


def linear_of(node: Any, parameters: Parameters) -> LinearNode | None:
    if not isinstance(node, Node) or node.target is not F.linear:
        return None
    given = arguments(node, "input", "weight", "bias")
    if given is None or not _are_parameters(given, parameters):
        return None
    weight = _value(given["weight"])
    if weight.dim() != 2:
        return None
    return LinearNode(
        node, given["input"], given["weight"], given.get("bias"), weight.shape[0]
    )


def convolution_of(node: Any, parameters: Parameters) -> ConvolutionNode | None:
    axes = _CONVOLUTIONS.get(node.target) if isinstance(node, Node) else None
    if axes is None:
        return None
    names = "input", "weight", "bias", "stride", "padding", "dilation", "groups"
    given = arguments(node, *names)
    if given is None or not _are_parameters(given, parameters):
        return None
    stride = _per_axis(given.get("stride", 1), axes)
    padding = _per_axis(given.get("padding", 0), axes)
    dilation = _per_axis(given.get("dilation", 1), axes)
    groups = given.get("groups", 1)
    if None in (stride, padding, dilation) or type(groups) is not int:
        return None
    geometry: Any = stride, padding, dilation, groups
    return ConvolutionNode(
        node,
        given["input"],
        given["weight"],
        given.get("bias"),
        Geometry(*geometry),
    )


def _are_parameters(given: dict[str, Any], parameters: Parameters) -> bool:
    bias = given.get("bias")
    return (
        isinstance(given.get("input"), Node)
        and given.get("weight") in parameters
        and (bias is None or bias in parameters)
    )


def _per_axis(given: Any, axes: int) -> tuple[int, ...] | None:
    """None for what is no number, such as padding by a name."""
    if type(given) is int:
        return (given,) * axes
    if not isinstance(given, tuple | list) or len(given) not in (1, axes):
        return None
    if any(type(each) is not int for each in given):
        return None
    return tuple(given) * (axes // len(given))


def _value(node: Node) -> Tensor:
    value = value_of(node)
    assert value is not None
    return value


def norm_of(node: Node, parameters: Parameters) -> BatchNorm | None:
    """The batch norm by its running statistics that a node is. Its tensors are inputs of
    the graph."""
    if node.target is not F.batch_norm:
        return None
    given = arguments(node, *_BATCH_NORM)
    if given is None or given.get("training", False) is not False:
        return None
    tensors: Any = [given.get(name) for name in _BATCH_NORM[1:5]]
    mean, variance, weight, bias = tensors
    made = BatchNorm(mean, variance, weight, bias, given.get("eps", 1e-5))
    statistics, trained = made[:2], made[2:4]
    is_of_inputs = all(
        isinstance(each, Node) and each.op == "placeholder" for each in statistics
    ) and all(each is None or each in parameters for each in trained)
    return made if is_of_inputs and type(made.eps) is float else None


_BATCH_NORM: Final = (
    "input", "running_mean", "running_var", "weight", "bias", "training", "momentum",
    "eps",
)  # fmt: skip


def is_no_dropout(node: Node) -> bool:
    """Whether a node is a dropout that is not active."""
    if node.target not in _DROPOUTS:
        return False
    given = arguments(node, "input", "p", "training", "inplace")
    return given is not None and given.get("training") is False
