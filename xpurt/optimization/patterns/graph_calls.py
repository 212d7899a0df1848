"""What a node of a graph calls, in whichever of PyTorch's ways it is written."""

import operator
from typing import Any, Final

import torch
from torch import nn
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


def dtype_read_of(node: Any) -> Node | None:
    """Whose dtype the node reads."""
    if isinstance(node, Node) and node.target is getattr and node.args[1] == "dtype":
        read = node.args[0]
        return read if isinstance(read, Node) else None
    return None


def child_of(module: nn.Module, node: Any) -> nn.Module | None:
    """The module that a node calls."""
    if not isinstance(node, Node) or node.op != "call_module":
        return None
    return module.get_submodule(str(node.target))


def may_write(module: nn.Module, node: Node) -> bool:
    """Whether the call of a node may write to tensors that others read."""
    child = child_of(module, node)
    if child is not None:
        return any(
            getattr(each, "inplace", False)
            or not type(each).__module__.startswith(("torch.nn.", "torch.ao.nn."))
            for each in child.modules()
        )
    name = getattr(node.target, "__name__", str(node.target))
    if node.kwargs.get("inplace") or "out" in node.kwargs:
        return True
    is_operator = node.target in vars(operator).values()
    return (
        name.endswith("_")
        or name == "setitem"
        or (
            is_operator
            and name.startswith("i")
            and name not in ("inv", "invert", "index")
        )
    )
