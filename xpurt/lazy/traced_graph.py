"""Traced graphs as functions of tensors, for the compiler.

Note [Numbers in compiled graphs]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A Python number of the program is a tensor without dimensions in its graph, so that another
number needs no other graph. Compiled code would have the number as a constant, and a learning
rate that changes would be compiled in each step. So ops that take a number are replaced by
those that take a tensor, as far as PyTorch has them. Other numbers are constants of the
compiled code, which then serves runs with the same numbers alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

NumberValue = bool | int | float | complex

# A constant of a graph that follows from the sizes of the parameters: its value, of these
# and of the value that the graph has.
FromSizes = Callable[[Sequence[Tensor], Any], Any]


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the program, which is a tensor without dimensions here. It has its type:
    see Note [Numbers beside lazy tensors] in csrc/lazy/numbers.h."""

    parameter: int  # its index
    tensor: Tensor


class NumberIsNeeded(Exception):
    """An op of the graph takes the number itself, and no tensor."""

    def __init__(self, op: str, parameters: list[int]) -> None:
        super().__init__(f"{op} takes a number, and no tensor in its place")
        self.parameters = parameters


def function_of(
    graph: Any,
    constants: Mapping[int, NumberValue],
    from_sizes: Mapping[str, FromSizes] | None = None,
) -> Callable[..., list[Tensor]]:
    """The function of a TorchScript graph of functional aten ops: it takes the parameters,
    and returns the results.

    `constants` has the numbers that are constants of the function, by the index of their
    parameter. `from_sizes`: by the name of a value in the graph. Raises NumberIsNeeded, when
    called, if another one has to be.
    """

    def run(*parameters: Tensor) -> list[Tensor]:
        values: dict[str, Any] = {}
        places: dict[str, int] = {}
        for place, each in enumerate(graph.inputs()):
            values[each.debugName()] = parameters[place]
            places[each.debugName()] = place
        for node in graph.nodes():
            names = [each.debugName() for each in node.inputs()]
            if node.kind() == "aten::ScalarImplicit":
                place = places[names[0]]
                found = constants.get(place, Number(place, parameters[place]))
                outputs: Sequence[Any] = [found]
            else:
                outputs = _outputs(node, [values[each] for each in names])
            results = [each.debugName() for each in node.outputs()]
            if from_sizes and results and results[0] in from_sizes:
                outputs = [from_sizes[results[0]](parameters, outputs[0])]
            values.update(zip(results, outputs, strict=True))
        return [values[each.debugName()] for each in graph.outputs()]

    return run


def _outputs(node: Any, inputs: list[Any]) -> Sequence[Any]:
    kind = node.kind()
    if kind == "prim::Constant":
        return [node.output().toIValue()]
    if kind == "prim::ListConstruct":
        return [inputs]
    if kind == "prim::ListUnpack":
        return list(inputs[0])
    found = _call(_overload_of(node), inputs)
    return found if isinstance(found, tuple) else [found]


def _overload_of(node: Any) -> Any:
    schema = torch._C.parse_schema(node.schema())
    namespace, _, name = schema.name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name)
    return getattr(packet, schema.overload_name or "default")


def _call(op: Any, inputs: list[Any]) -> Any:
    of_each = OF_EACH.get(op)
    if of_each is not None:
        return _for_each(of_each, inputs)
    numbers = [each for each in inputs if isinstance(each, Number)]
    if numbers:
        by_tensors = BY_TENSORS.get(op)
        if by_tensors is None:
            raise NumberIsNeeded(str(op), [each.parameter for each in numbers])
        return by_tensors(*inputs)
    view = VIEWS.get(op)
    if view is not None:
        return view(*inputs)
    positional, named = [], {}
    # Arguments at the end that an op of OF_EACH lacks have their defaults.
    for each, of in zip(inputs, op._schema.arguments, strict=False):
        if not of.kwarg_only:
            positional.append(each)
        else:
            named[of.name] = each
    return op(*positional, **named)


def _for_each(op: Any, inputs: list[Any]) -> list[Any]:
    """The results of an op for each tensor of the lists among its inputs. A number that is
    needed is so for all of them."""
    needed: list[int] = []
    found = []
    for place in range(len(inputs[0])):
        row = [each[place] if isinstance(each, list) else each for each in inputs]
        try:
            found.append(_call(op, row))
        except NumberIsNeeded as error:
            needed += error.parameters
    if needed:
        raise NumberIsNeeded(str(op), needed)
    return found


def _beside(op: Any) -> Callable[..., Any]:
    """An op of a tensor and a number as that of two tensors."""

    def call(self: Tensor, number: Number, *rest: Any) -> Any:
        return op(self, number.tensor, *rest)

    return call


def _scaled(value: Any, by: Tensor) -> Tensor:
    return by * (value.tensor if isinstance(value, Number) else value)


def _plus(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    if isinstance(other, Number):
        other = other.tensor
    return self + _scaled(alpha, other)


def _minus(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    if isinstance(other, Number):
        other = other.tensor
    return self - _scaled(alpha, other)


# The views behind ops that return copies of them: a graph writes to none of its values. And
# ops that read the memory of a tensor, which a lazy one has as if it were dense.
VIEWS: dict[Any, Callable[..., Any]] = {
    aten.t_copy.default: aten.t.default,
    aten.detach_copy.default: lambda self: self,
    aten.alias_copy.default: lambda self: self,
    aten.view_copy.default: aten.reshape.default,
    aten._unsafe_view.default: aten.reshape.default,
    aten.expand_copy.default: lambda self, sizes, implicit: self.expand(sizes),
    aten.permute_copy.default: aten.permute.default,
    aten.transpose_copy.int: aten.transpose.int,
    aten.unsqueeze_copy.default: aten.unsqueeze.default,
    aten.squeeze_copy.default: aten.squeeze.default,
    aten.squeeze_copy.dim: aten.squeeze.dim,
    aten.select_copy.int: aten.select.int,
    aten.slice_copy.Tensor: aten.slice.Tensor,
    aten.diagonal_copy.default: aten.diagonal.default,
    aten.view_copy.dtype: lambda self, dtype: aten.view.dtype(self.contiguous(), dtype),
    aten.as_strided_copy.default: lambda self, *of: self.contiguous().as_strided(*of),
    aten.as_strided_scatter.default: lambda self, *of: aten.as_strided_scatter(
        self.contiguous(), *of
    ),
}

# Ops that take numbers, by tensors.
BY_TENSORS: dict[Any, Callable[..., Any]] = {
    aten.add.Tensor: _plus,
    aten.add.Scalar: _plus,
    aten.sub.Tensor: _minus,
    aten.sub.Scalar: _minus,
    aten.mul.Scalar: _beside(aten.mul.Tensor),
    aten.div.Scalar: _beside(aten.div.Tensor),
    aten.pow.Tensor_Scalar: _beside(aten.pow.Tensor_Tensor),
    aten.addcmul.default: lambda self, a, b, value: self + _scaled(value, a * b),
    aten.addcdiv.default: lambda self, a, b, value: self + _scaled(value, a / b),
    aten.eq.Scalar: _beside(aten.eq.Tensor),
    aten.ne.Scalar: _beside(aten.ne.Tensor),
    aten.lt.Scalar: _beside(aten.lt.Tensor),
    aten.le.Scalar: _beside(aten.le.Tensor),
    aten.gt.Scalar: _beside(aten.gt.Tensor),
    aten.ge.Scalar: _beside(aten.ge.Tensor),
}

# Ops on lists, by those on their tensors: see Note [Ops on lists of lazy tensors] in
# csrc/lazy/list_ops.h, and the list there.
OF_EACH: dict[Any, Any] = {
    aten._foreach_add.List: aten.add.Tensor,
    aten._foreach_sub.List: aten.sub.Tensor,
    aten._foreach_mul.List: aten.mul.Tensor,
    aten._foreach_div.List: aten.div.Tensor,
    aten._foreach_lerp.List: aten.lerp.Tensor,
    aten._foreach_lerp.Scalar: aten.lerp.Scalar,
    aten._foreach_maximum.List: aten.maximum.default,
    aten._foreach_sqrt.default: aten.sqrt.default,
    aten._foreach_neg.default: aten.neg.default,
    aten._foreach_reciprocal.default: aten.reciprocal.default,
}
for _of_lists, _of_tensors in (
    (aten._foreach_add, aten.add.Scalar),
    (aten._foreach_sub, aten.sub.Scalar),
    (aten._foreach_mul, aten.mul.Scalar),
    (aten._foreach_div, aten.div.Scalar),
    (aten._foreach_addcmul, aten.addcmul.default),
    (aten._foreach_addcdiv, aten.addcdiv.default),
):
    OF_EACH[_of_lists.Scalar] = OF_EACH[_of_lists.ScalarList] = _of_tensors
