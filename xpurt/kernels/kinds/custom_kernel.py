"""Rows whose kernels are written out: each is run once per element of a tensor.

The text of a step is OpenCL C. It sees the op's arguments under their names in the
schema, and the results as ``out`` (``out0``, ``out1``, ... if there are several):

- of a tensor ``t``: ``t_load(o)``, the element at offset ``o`` (float16 and bfloat16 as
  float); ``t_store(o, v)``; ``t_RANK``; ``t_size(d)`` and ``t_stride(d)``;
  ``t_numel``; ``t_at(index)``, the offset of an index (``long index[8]``);
  ``t_unravel(i, index)``, the index of the ``i``-th element in row-major order, which
  returns its offset; ``t_line(i, dim, index)``, the same for the ``i``-th line along
  ``dim``, at whose beginning ``index`` points; ``t_element(i)``, the offset alone, where
  a row's functions have ``offset_of``;
- a list of tensors or None ``l``: ``l0``, ``l1``, ...; ``l_EACH(say)``, which says
  ``say(k)`` for each one given; ``l_GIVEN``, how many are; ``l_FIRST``, the first one;
  ``l_ADJACENT``, whether none between them is missing; ``l_RANK`` (indices arrive as
  integers, all of one shape);
- ``HAS_t``: 1 if the optional argument was given, of a tensor or any other;
- a number under its name; ``LOW_x`` of a float ``x``, what it lacks to the number that
  was given, if C is float; a list ``l`` as ``l[0]``, ``l[1]``, ...; ``l_COUNT``;
- a string ``s`` by ``#if s_IS_reflect``;
- ``i``, the number of the work-item; ``C``, the type of the computation, that of the
first
  tensor; ``wrapped(dim, rank)`` of a negative dim; ``FAULT``, to be said where an index
  is out of range: the next wait raises IndexError.

The text has no variable ``a``: that is the structure of the arguments.

With ``lanes`` a sub-group runs each work-item: ``lane`` of ``LANES``, and
``across(acc, combine)`` leaves the combination over the lanes in every one's ``acc``.
"""

import re
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import ClassVar

from xpurt.kernels.kinds.row import NUMERIC, BaseRow, Kind

_READ = re.compile(r"\b(\w+?)_load\(")
_WRITTEN = re.compile(r"\b(\w+?)_store\(")


# In the place of an argument that a result is laid out like.
CONTIGUOUS = "contiguous"


@dataclass(frozen=True)
class Step:
    """A kernel: its work-items are the elements of the tensor `over`, or its lines
    along the dimensions `along` (numbers, or names of arguments that are), or of
    elements `share[0]` each, in row-major order; `share[1]` if C is double."""

    over: str
    text: str
    along: tuple[str, ...] = ()
    lanes: bool = False
    share: tuple[int, int] = (1, 1)
    part: str = "own"  # "before" or "after" the row's primitive, and not without it
    also_reads: tuple[str, ...] = ()  # that the text reads by way of macros

    @cached_property
    def reads(self) -> tuple[str, ...]:
        found = dict.fromkeys([*_READ.findall(self.text), *self.also_reads])
        return tuple(found)

    @cached_property
    def writes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(_WRITTEN.findall(self.text)))

    @property
    def faults(self) -> bool:
        return "FAULT" in self.text

    def described(self) -> dict[str, object]:
        """The step as C++ takes it."""
        return {
            "over": self.over,
            "along": list(self.along),
            "lanes": self.lanes,
            "share": list(self.share),
            "faults": self.faults,
            "part": self.part,
            "reads": list(self.reads),
            "writes": list(self.writes),
        }


@dataclass(frozen=True)
class Scratch:
    """A tensor that steps hand on: of the type of the computation, or of integers.
    Its sizes are those of `like`, or of its dimensions `dims`; `copies` of them, if
    not 0, lie in a first dimension."""

    name: str
    like: str
    integral: bool = False
    dims: tuple[int, ...] = ()
    copies: int = 0


@dataclass(frozen=True)
class Result:
    """What PyTorch's meta function, which gives the sizes and types of results, has
    otherwise than the CPU: the type is that of the first of the tensors `type_of` that
    is given; the strides are those of the argument `laid_out_like`, as the steps see
    it, or, where that has other sizes, the memory format is; or they are those of
    CONTIGUOUS. Without the bool argument `empty_without` the result is empty."""

    type_of: tuple[str, ...] = ()
    laid_out_like: str = ""
    empty_without: str = ""


@dataclass(frozen=True)
class CustomKernel(BaseRow):
    """An op in steps, one after the other. `begins_as` names the argument whose copy
    the result is before the first step (in place, itself); without it the results are
    new: as PyTorch says for tensors of the device "meta", or one that looks like the
    argument `like`. `overloads` are the overloads that it is for; all, if there are none.
    `kind` has the types that the first tensor may be of. `functions` are put before the
    kernels, and `templates` before those. Arguments in `contiguous` are copied if they
    are not; those in `dense` are all brought to the memory format of the first of them. `rows` names the tensors,
    results too, whose rows along the first dimension are computed one by one, so that
    several devices can share them; the rest is used whole.
    An op of xpurt's own, "xpurt::name", which rows of other ops call, has a `schema`,
    "(arguments) -> results". `results`, if there are any, has one per result. Where the
    first tensor is empty and `raises_on_empty` is set, or a step says FAULT, PyTorch's
    kernel is called for its error; and so it is, with `same_type`, for an `out=` of another type than the
    first tensor's. A row that `draws` random numbers sees contiguous tensors in one
    dimension. `fault` says what a FAULT is, if not a wrong index: RuntimeError.
    `primitive` names what oneDNN has in the place of the steps, for the calls that it
    computes as PyTorch does (``csrc/onednn/rows.h``), on a CPU."""

    template: ClassVar[str] = "custom_kernel"

    aten: str
    steps: tuple[Step, ...]
    kind: Kind = NUMERIC
    begins_as: str = ""
    like: str = ""
    overloads: tuple[str, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    functions: str = ""
    templates: tuple[str, ...] = ()
    schema: str = ""
    flops: float = 4
    contiguous: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    dense: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    raises_on_empty: bool = False
    same_type: bool = False
    draws: bool = False
    fault: str = ""
    primitive: str = ""

    @property
    def leaves_empty(self) -> bool:
        """Whether empty tensors are left to PyTorch's kernel."""
        return self.raises_on_empty or any(step.faults for step in self.steps)

    def takes_strides_of(self, tensor: str) -> bool:
        """Whether some text finds the elements of `tensor` by its strides. Without,
        offsets are numbers of work-items: the tensor has to be contiguous."""
        asked = rf"\b{tensor}_(stride|at|unravel|line|element|EACH)\b"
        texts = (self.functions, *(step.text for step in self.steps))
        return any(re.search(asked, text) for text in texts)

    @property
    def laid_out_results(self) -> tuple[Result, ...]:
        """`results`, where those that are written without a signature at their strides
        are contiguous: PyTorch's meta functions give some the strides of an
        argument."""
        written = {name for step in self.steps for name in step.writes}
        names = [f"out{number}" for number in range(len(written))]
        if "out" in written:
            names = ["out"]
        found = list(self.results)
        if self.begins_as or self.like or self.draws:
            return self.results
        for number, name in enumerate(names):
            if name not in written or self.takes_strides_of(name):
                continue
            found += [Result()] * (number + 1 - len(found))
            if not found[number].laid_out_like:
                found[number] = replace(found[number], laid_out_like=CONTIGUOUS)
        return tuple(found)

    def described(self) -> dict[str, object]:
        return {
            "steps": [step.described() for step in self.steps],
            "scratch": [asdict(each) for each in self.scratch],
            "results": [asdict(each) for each in self.laid_out_results],
            "begins_as": self.begins_as,
            "like": self.like,
            "contiguous": list(self.contiguous),
            "dense": list(self.dense),
            "rows": list(self.rows),
            "same_type": self.same_type,
            "raises_on_empty": self.leaves_empty,
            "draws": self.draws,
            "fault": self.fault,
            "primitive": self.primitive,
        }
