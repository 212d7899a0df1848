"""What a node of a graph of Dynamo's calls, in whichever of PyTorch's ways it is
written."""

import inspect
import math
import operator
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import Node
from torch.nn import functional as F

# Methods have the name of the function.
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "add": (operator.add, torch.add),
    "mul": (operator.mul, torch.mul),
    "div": (operator.truediv, torch.div),
    "matmul": (operator.matmul, torch.matmul),
    "softmax": (F.softmax, torch.softmax),
    "pow": (operator.pow, torch.pow),
    "square": (torch.square,),
    "mean": (torch.mean,),
    "rsqrt": (torch.rsqrt,),
    "transpose": (torch.transpose,),
    "masked_fill": (torch.masked_fill,),
    "to": (),
    "float": (),
    "type_as": (),
}
_NAMES: Final = {each: name for name, them in _FUNCTIONS.items() for each in them}

# Where functions write to nothing but what their names or arguments say.
_KNOWN: Final = ("torch", "torch.functional", "torch.nn.functional", "torch._C._nn")
_READ_ONLY: Final = (operator.__name__, math.__name__, "_operator")


def name_of(node: Any) -> str:
    """The name of the function or method that a node calls; "" for any other."""
    if not isinstance(node, Node):
        return ""
    if node.op == "call_method" and str(node.target) in _FUNCTIONS:
        return str(node.target)
    return _NAMES.get(node.target, "") if node.op == "call_function" else ""


def arguments(node: Node, *names: str) -> dict[str, Any] | None:
    """The arguments by their names, in the order of the positions; None if the call has
    others."""
    given = dict(zip(names, node.args, strict=False))
    if len(node.args) > len(names) or not set(node.kwargs) <= set(names):
        return None
    return given | node.kwargs


def operands(node: Any, name: str) -> tuple[tuple[Any, Any], ...]:
    """The two operands of a call of that name, in both orders; () for any other call."""
    if name_of(node) != name or len(node.args) != 2 or node.kwargs:
        return ()
    one, other = node.args
    return (one, other), (other, one)


def value_of(node: Any) -> Tensor | None:
    """A tensor without elements, as the node's value is; None if that is none."""
    value = node.meta.get("example_value") if isinstance(node, Node) else None
    return value if isinstance(value, Tensor) else None


def dtype_of(node: Any) -> torch.dtype | None:
    value = value_of(node)
    return None if value is None else value.dtype


def cast_of(node: Any) -> tuple[Any, torch.dtype | None] | None:
    """What a node casts, and to which dtype; None if it casts nothing."""
    name = name_of(node)
    if name == "float" and len(node.args) == 1 and not node.kwargs:
        return node.args[0], torch.float32
    if name == "type_as" and len(node.args) == 2 and not node.kwargs:
        return node.args[0], dtype_of(node)
    if name == "to":
        given = arguments(node, "input", "dtype")
        if given is not None and isinstance(given.get("dtype"), torch.dtype):
            return given["input"], given["dtype"]
    return None


def may_write(node: Node) -> bool:
    """Whether the call of a node may write to tensors that others read, or change what
    the calls after it compute."""
    target: Any = node.target
    if node.op == "call_method":
        return str(target).endswith("_") and not str(target).endswith("__")
    if node.op != "call_function":
        return False
    if isinstance(target, torch._ops.OpOverload):
        return bool(target._schema.is_mutable)
    if isinstance(target, torch._ops.OpOverloadPacket):
        names = target.overloads()  # type: ignore[no-untyped-call]
        return any(getattr(target, each)._schema.is_mutable for each in names)
    name, module = getattr(target, "__name__", ""), getattr(target, "__module__", "")
    if module in _READ_ONLY:
        return name in _WRITING_OPERATORS
    if target in _NORMS:
        return bool(_given(node).get("training", _given(node).get("use_input_stats")))
    if name.endswith("_") or "out" in node.kwargs or module not in _KNOWN:
        return True
    return _is_inplace(node)


_WRITING_OPERATORS: Final = {"setitem", "delitem"} | {
    name for name in dir(operator) if name.startswith("i") and name[1:] in dir(operator)
}


_NORMS: Final = (F.batch_norm, F.instance_norm)


def _given(node: Node) -> dict[str, Any]:
    return dict(zip(_parameters(node.target), node.args, strict=False)) | node.kwargs


def _is_inplace(node: Node) -> bool:
    given = _given(node)
    return bool(given.get("inplace")) or given.get("max_norm") is not None


@cache
def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a builtin one, which has no such argument
        return ()
