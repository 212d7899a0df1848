"""Rows whose kernels are written out. Each kernel has one work-item per element of a
tensor.

The text of a step is OpenCL C. The op's arguments have their names of the schema, and
the results are ``out`` (``out0``, ``out1``, ... if there are several). The text can
use:

- for a tensor ``t``: ``t_load(o)``, the element at offset ``o`` (float16 and bfloat16
  as float); ``t_store(o, v)``; ``t_RANK``; ``t_size(d)`` and ``t_stride(d)``;
  ``t_numel``; ``t_at(index)``, the offset of an index (``long index[8]``);
  ``t_unravel(i, index)``, which fills ``index`` with the index of the ``i``-th element
  in row-major order, and returns its offset; ``t_line(i, dim, index)``, the same for
  the first element of the ``i``-th line along ``dim``; ``t_element(i)``, the offset
  alone, if the functions of the row include ``offset_of``;
- for a list ``l`` of tensors or None: ``l0``, ``l1``, ...; ``l_EACH(m)``, which expands
  to ``m(k)`` for each tensor ``k`` that is given; ``l_GIVEN``, their number;
  ``l_FIRST``, the number of the first; ``l_ADJACENT``, 1 if none is missing between
  them; ``l_RANK`` (indices arrive as integers, all of one shape);
- ``HAS_t``: 1 if the optional argument ``t`` is given, whatever its type;
- for a number: its name (``a.arg_step`` for ``step``, which is a function of OpenCL C,
  and ``a.arg_C``); ``LOW_x`` of a float ``x``, the part of the given value that
  ``x`` lost when it was rounded to float (if C is float);
- for a list ``l`` of numbers: ``l[0]``, ``l[1]``, ...; ``l_COUNT``;
- for a string ``s``: ``#if s_IS_reflect``;
- ``i``, the number of the work-item; ``C``, the type of the computation, which is that
  of the first tensor; ``wrapped(dim, rank)`` of a negative dim; ``FAULT``, a statement
  for an index out of range: the next wait raises IndexError; ``FAULT_OF(number)``, which
  raises RuntimeError with the message of ``_C.number_of_message()``.

The text has no variable ``a``: that is the structure of the arguments.

With ``lanes`` a sub-group runs each work-item: ``lane`` is the number of the lane, out
of ``LANES``, and ``across(acc, combine)`` leaves the combination over the lanes in
``acc`` of each lane.
"""

import re
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import ClassVar

from xpurt.kernels.kinds.row import NUMERIC, BaseRow, Kind

_READ = re.compile(r"\b(\w+?)_load\(")
_WRITTEN = re.compile(r"\b(\w+?)_store\(")


# A value of `Result.laid_out_like`, in place of an argument's name.
CONTIGUOUS = "contiguous"


@dataclass(frozen=True)
class Step:
    """A kernel. Its work-items are the elements of the tensor `over`; or its lines
    along the dimensions `along` (numbers, or names of arguments that hold them); or
    groups of `share[0]` elements in row-major order (`share[1]` if C is double)."""

    over: str
    text: str
    along: tuple[str, ...] = ()
    lanes: bool = False
    share: tuple[int, int] = (1, 1)
    part: str = "own"  # "before" or "after" the row's primitive; runs only with it
    also_reads: tuple[str, ...] = ()  # tensors that the text reads through macros

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
        """The step in the form that C++ reads."""
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
    """A tensor that one step writes and another reads, of the type of the computation
    or of integers. Its sizes are those of `like`, or of the dimensions `dims` of it. If
    `copies` is not 0, a first dimension of this size is added. With `of_halves` it is
    given only if the type of the computation is wider than that of the first tensor."""

    name: str
    like: str
    integral: bool = False
    of_halves: bool = False
    dims: tuple[int, ...] = ()
    copies: int = 0


@dataclass(frozen=True)
class Result:
    """The differences between PyTorch's CPU kernel and its meta function, from which
    the sizes and types of results come.

    The type is that of the first tensor in `type_of` that is given. The strides are
    those of the argument `laid_out_like`, as the steps see it; if that has other sizes,
    its memory format is used. CONTIGUOUS means contiguous strides. The result is empty
    if the bool argument `empty_without` is False."""

    type_of: tuple[str, ...] = ()
    laid_out_like: str = ""
    empty_without: str = ""


@dataclass(frozen=True)
class CustomKernel(BaseRow):
    """An op in steps, which run one after the other.

    `begins_as` names an argument: before the first step the result is a copy of it (in
    place, the argument itself). Without it the results are new tensors, with the sizes
    and types that PyTorch computes for the device "meta", or one tensor like the
    argument `like`. The row is for the `overloads`; for all if there are none. `kind`
    has the types that the first tensor may have. The program begins with the
    `templates`, then the `functions`, then the kernels. Arguments in `contiguous` are
    copied if they are not contiguous; those in `dense` are brought to the memory format
    of the first of them. `rows` names the tensors, results too, whose rows along the
    first dimension are computed one by one, so that several devices can share them;
    each device uses the other tensors whole.

    An op of xpurt's own, "xpurt::name", which rows of other ops call, has a `schema`,
    "(arguments) -> results". `results`, if there are any, has one per result. PyTorch's
    kernel, if it has one for the CPU, computes calls whose first tensor is empty. It is
    called for its error, too, if an argument in `alike` has another type than the first
    tensor, with `same_type` if an `out=` has, and if an argument has a type that is not
    in `types`: "name=letters". Indices that are not in there are int32 or int64.
    `parameters` have one type, that of the first tensor, or float beside halves; and,
    if they are `per_channel`, one element per channel of the input. The numbers in
    `counts` are the first sizes of the input, and the last one is the product of the
    other sizes; PyTorch's kernel computes calls with other numbers. A row that `draws`
    random numbers receives contiguous tensors as one dimension. `fault` is the message
    of the RuntimeError that a FAULT raises; without it a FAULT is a wrong index.
    `primitive` names oneDNN's counterpart of the steps, for the calls that oneDNN
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
    same_type: bool = False
    alike: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    per_channel: bool = False
    counts: tuple[str, ...] = ()
    draws: bool = False
    fault: str = ""
    primitive: str = ""

    def takes_strides_of(self, tensor: str) -> bool:
        """True if any text finds the elements of `tensor` by its strides. If not,
        offsets are numbers of work-items, and the tensor has to be contiguous."""
        asked = rf"\b{tensor}_(stride|at|unravel|line|element|EACH)\b"
        texts = (self.functions, *(step.text for step in self.steps))
        return any(re.search(asked, text) for text in texts)

    @property
    def laid_out_results(self) -> tuple[Result, ...]:
        """`results`, made contiguous if the steps write them without regard to strides.
        PyTorch's meta functions give some of these the strides of an argument."""
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
            "alike": list(self.alike),
            "types": list(self.types),
            "parameters": list(self.parameters),
            "per_channel": self.per_channel,
            "counts": list(self.counts),
            "draws": self.draws,
            "fault": self.fault,
            "primitive": self.primitive,
        }
