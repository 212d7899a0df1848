"""Compiles traced graphs by torch.compile's own compiler."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from xpurt import _lazy
from xpurt.compiler import generated_code
from xpurt.lazy import ordered_collectives, placed_draws
from xpurt.lazy.compilations import Compilation, Compilations, why_now
from xpurt.lazy.inductor_code import Code, code_of
from xpurt.lazy.size_families import (
    MOST_MEMBERS,
    NoPattern,
    Pattern,
    Sized,
    pattern_of,
    sized,
)
from xpurt.lazy.symbolic_form import (
    bounds_of,
    fakes_of,
    from_sizes_of,
    shapes_of,
)
from xpurt.lazy.traced_graph import NumberIsNeeded, NumberValue, function_of

_compilations: list[Compilation] = []


def compilations() -> Compilations:
    """The graphs that were compiled in this process, or could not be, in their order."""
    return Compilations(tuple(_compilations))


# Runs a graph in compiled form; and the numbers that it is for, by parameter.
Program = tuple[Code, dict[int, NumberValue]]


def compile_graph(graph: "_lazy.LazyGraph", arguments: list[Tensor]) -> Program | None:
    """`graph` in compiled form. None if it can't be compiled."""
    return _program(_compile_recorded(graph, arguments, None, "exact"))


def compile_sizes(graph: "_lazy.LazyGraph", arguments: list[Tensor]) -> Program | None:
    """The same, for graphs that differ in sizes alone, if another one ran before."""
    return _program(_compiled_sizes(graph, arguments))


def _compiled_sizes(graph: "_lazy.LazyGraph", arguments: list[Tensor]) -> "Form | None":
    taken = sized(graph.script)
    if taken is None:
        return _compile_recorded(
            graph, arguments, None, "exact: a constant is a tensor"
        )
    family = _family_of(taken)
    if not family.others(taken):
        return _compile_recorded(graph, arguments, None, "exact: the first of its kind")
    try:
        pattern = pattern_of(taken, family.others(taken))
    except NoPattern as error:
        return _compile_recorded(graph, arguments, None, f"exact: {error}")
    form = _compile_recorded(graph, arguments, pattern, "symbolic")
    if form is not None:
        family.forms.append((pattern, form))
        return form
    reason = f"exact: symbolic sizes raise {_compilations.pop().error}"
    return _compile_recorded(graph, arguments, None, reason)


def find_sizes(graph: "_lazy.LazyGraph", arguments: list[Tensor]) -> Program | None:
    """A program from what was compiled for other sizes, before the first run of a graph."""
    taken = sized(graph.script)
    if taken is None:
        return None
    family = _family_of(taken)
    for pattern, form in family.forms:
        if pattern.fits(taken) and form.takes(arguments):
            return _program(form)
    return None


def _program(form: "Form | None") -> Program | None:
    if form is None:
        return None
    return form.code, form.constants


@dataclass(frozen=True, slots=True)
class Form:
    """A graph in compiled form.

    constants: the numbers of the program that the code has, by parameter.
    guards: what has to hold of the sizes of its arguments.
    shapes, bounds: of its parameters, as in Compilation."""

    code: Code
    constants: dict[int, NumberValue]
    shapes: tuple[str, ...]
    bounds: dict[str, tuple[int, int | None]]
    guards: Callable[[list[Tensor]], bool] = lambda _: True

    def takes(self, arguments: list[Tensor]) -> bool:
        return self.guards(arguments)


@dataclass(frozen=True, slots=True)
class _Family:
    """Graphs of one skeleton."""

    members: list[Sized] = field(default_factory=list)
    forms: list[tuple[Pattern, Form]] = field(default_factory=list)

    def others(self, graph: Sized) -> list[Sized]:
        return [each for each in self.members if each != graph]


_families: dict[tuple[Any, ...], _Family] = {}


def _family_of(graph: Sized) -> _Family:
    """With the graph as a member."""
    family = _families.setdefault(graph.skeleton, _Family())
    if graph not in family.members:
        family.members.append(graph)
        del family.members[:-MOST_MEMBERS]
    return family


def _compile_recorded(
    graph: "_lazy.LazyGraph",
    arguments: list[Tensor],
    pattern: Pattern | None,
    sizes: str,
) -> Form | None:
    begin = time.perf_counter()
    reason = why_now(graph.runs - 1, graph.run_us)  # this run is counted already
    script = graph.script
    error, form = "", None
    with generated_code.keeping() as kept:
        try:
            placed_draws.define()
            ordered_collectives.define()
            form = _compile(script, arguments, pattern, kept)
        except Exception as found:  # whatever the compiler lacks: it runs op by op
            told = str(found).strip().partition("\n")[0]
            error = f"{type(found).__name__}: {told}"
    _lazy.register_lazy_kernels()  # of ops that the compiler's import has defined
    _compilations.append(
        Compilation(
            graph=graph.name,
            nodes=sum(1 for each in script.nodes() if each.kind() != "prim::Constant"),
            seconds=time.perf_counter() - begin,
            reason=reason,
            sizes=sizes,
            shapes=form.shapes if form else (),
            bounds=form.bounds if form else {},
            constants=form.constants if form else {},
            error=error,
            text=str(script),
            code="\n".join(each.source_code for each in kept),
        )
    )
    return form


def _compile(
    graph: Any, arguments: list[Tensor], pattern: Pattern | None, kept: list[Any]
) -> Form:
    """`kept`: what Inductor has compiled."""
    from torch.fx.experimental.proxy_tensor import make_fx

    constants: dict[int, NumberValue] = {}
    from_sizes = from_sizes_of(pattern.example, pattern) if pattern else None
    fakes, environment = fakes_of(arguments, pattern)
    with torch.no_grad():
        while True:
            function = function_of(graph, constants, from_sizes)
            try:
                traced = make_fx(function)(*fakes)
                break
            except NumberIsNeeded as needed:
                for each in needed.parameters:
                    constants[each] = arguments[each].item()
        code = code_of(traced, fakes, kept)
    form = Form(code, constants, shapes_of(fakes), bounds_of(environment))
    # Also of sizes that the compiler made constants.
    guards = (
        environment.produce_guards_expression(fakes, ignore_static=False)
        if pattern
        else None
    )
    if guards is None:
        return form
    evaluate = environment.evaluate_guards_expression
    return replace(
        form,
        guards=lambda given: bool(evaluate(guards, given)),
    )
