"""Graphs that differ in sizes alone.

Note [Sizes of lazy graphs]
~~~~~~~~~~~~~~~~~~~~~~~~~~~
A graph has the sizes of its tensors twice: as the sizes of its parameters, and in
constants, as of views, which the program made of sizes. Other sizes are another graph, and
the lazy core tells nobody which constants are sizes. So graphs are compared that are alike
in all but numbers: a size of a parameter that differs between two of them is a symbol, and
a constant that differs has to follow from symbols, as `factor * symbols + offset`. What is
compiled for them then serves each graph whose constants are what these formulas have for
its sizes, and which passes the guards of the compiler. Every constant of every graph is
compared, so a formula that was found by chance is not used where it is wrong.

Rejected: padding to the sizes of a bucket. Sums, means and losses would have to know what
is padded. And symbols in place of all sizes at once: weights would have some, too.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations_with_replacement
from typing import Any

import torch

MOST_MEMBERS = 8  # of a family that are compared


@dataclass(frozen=True, slots=True)
class Sized:
    """A graph, taken apart. `skeleton`: all but its sizes and the whole numbers in its
    constants. `names`: of the value that has each constant, and its place in a list, or
    -1. `ranks`: of the parameters, whose sizes are in `sizes`, one after the other."""

    skeleton: tuple[Any, ...]
    ranks: tuple[int, ...]
    sizes: tuple[int, ...]
    constants: tuple[int, ...]
    names: tuple[tuple[str, int], ...] = field(compare=False)

    def dimension(self, place: int) -> tuple[int, int]:
        """The parameter, and its dimension, of a place in `sizes`."""
        for parameter, rank in enumerate(self.ranks):
            if place < rank:
                return parameter, place
            place -= rank
        raise IndexError(place)


@dataclass(frozen=True, slots=True)
class Formula:
    """factor * (product of the sizes at `places`) + offset"""

    places: tuple[int, ...]
    factor: int
    offset: int

    def of(self, sizes: Any) -> Any:
        """`sizes`: by place."""
        found = self.factor * sizes[self.places[0]]
        for each in self.places[1:]:
            found = found * sizes[each]
        return found + self.offset


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which sizes of a graph are symbols, by place, and the constants that follow from
    them. The others are those of `example`."""

    example: Sized
    symbols: frozenset[int]
    formulas: dict[int, Formula]

    def fits(self, graph: Sized) -> bool:
        return all(
            place in self.symbols or size == self.example.sizes[place]
            for place, size in enumerate(graph.sizes)
        ) and all(
            value
            == (
                self.formulas[place].of(graph.sizes)
                if place in self.formulas
                else self.example.constants[place]
            )
            for place, value in enumerate(graph.constants)
        )


class NoPattern(Exception):
    """The sizes of a graph can't be symbols. Its text is the reason."""


def sized(graph: Any) -> Sized | None:
    """A TorchScript graph, taken apart; None if it has a tensor as a constant."""
    numbers: dict[str, int] = {}
    parameters = [each.type() for each in graph.inputs()]
    skeleton: list[Any] = [str(each.dtype()) for each in parameters]
    constants: list[int] = []
    names: list[tuple[str, int]] = []
    for each in graph.inputs():
        numbers[each.debugName()] = len(numbers)
    for node in graph.nodes():
        for each in node.outputs():
            numbers[each.debugName()] = len(numbers)
        if node.kind() != "prim::Constant":
            inputs = [numbers[each.debugName()] for each in node.inputs()]
            skeleton.append((node.kind(), node.schema(), *inputs))
            continue
        value = node.output().toIValue()
        if isinstance(value, torch.Tensor):
            return None
        name = node.output().debugName()
        if type(value) is int:
            skeleton.append(("int",))
            constants.append(value)
            names.append((name, -1))
        elif isinstance(value, list) and all(type(each) is int for each in value):
            skeleton.append(("ints", len(value)))
            constants += value
            names += [(name, place) for place in range(len(value))]
        else:
            skeleton.append((str(node.output().type()), repr(value)))
    skeleton.append(tuple(numbers[each.debugName()] for each in graph.outputs()))
    sizes = [list(each.sizes()) for each in parameters]
    ranks = tuple(len(each) for each in sizes)
    return Sized(
        (*skeleton, *ranks),
        ranks,
        tuple(chain.from_iterable(sizes)),
        tuple(constants),
        tuple(names),
    )


def pattern_of(graph: Sized, others: Sequence[Sized]) -> Pattern:
    """The pattern of a graph and `others` with its skeleton.

    Raises NoPattern if a constant follows from no size, or if a size that differs is 0 or
    1: those have other rules.
    """
    members = [graph, *others]
    symbols = _differing([each.sizes for each in members])
    if small := [place for place in symbols if graph.sizes[place] < 2]:
        parameter, dimension = graph.dimension(small[0])
        raise NoPattern(
            f"dimension {dimension} of parameter {parameter} is "
            f"{graph.sizes[small[0]]}, which is compiled by itself"
        )
    formulas = {}
    for place in _differing([each.constants for each in members]):
        values = [each.constants[place] for each in members]
        found = _formula(values, [each.sizes for each in members], symbols)
        if found is None:
            shown = ", ".join(str(each) for each in values)
            raise NoPattern(
                f"the constant %{graph.names[place][0]} is {shown}, which follows from "
                "no size of a parameter"
            )
        formulas[place] = found
    return Pattern(graph, frozenset(symbols), formulas)


def _differing(rows: Sequence[Sequence[int]]) -> list[int]:
    columns = zip(*rows, strict=True)
    return [place for place, column in enumerate(columns) if len(set(column)) > 1]


def _formula(
    values: Sequence[int], sizes: Sequence[Sequence[int]], symbols: Sequence[int]
) -> Formula | None:
    return next(_formulas(values, sizes, symbols), None)


def _formulas(
    values: Sequence[int], sizes: Sequence[Sequence[int]], symbols: Sequence[int]
) -> Iterator[Formula]:
    """The simplest ones first."""
    for number in (1, 2):
        for places in combinations_with_replacement(symbols, number):
            of = [math.prod(each[place] for place in places) for each in sizes]
            factor = values[0] // of[0] if of[0] else 0
            if all(value == factor * at for value, at in zip(values, of, strict=True)):
                yield Formula(places, factor, 0)
    for place in symbols:
        first, second = _two_sizes(values, [each[place] for each in sizes])
        if first is None or second is None:
            continue
        factor = (second[1] - first[1]) // (second[0] - first[0])
        found = Formula((place,), factor, first[1] - factor * first[0])
        if all(
            value == found.of(each) for value, each in zip(values, sizes, strict=True)
        ):
            yield found


def _two_sizes(
    values: Sequence[int], sizes: Sequence[int]
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Two pairs of a size and a value, with different sizes."""
    pairs = list(zip(sizes, values, strict=True))
    other = next((each for each in pairs if each[0] != pairs[0][0]), None)
    return pairs[0], other
