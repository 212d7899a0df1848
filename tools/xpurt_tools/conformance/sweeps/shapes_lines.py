"""Calls that compute along lines: one dimension, with others before and after it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from xpurt_tools.conformance.sweeps.shapes_cases import (
    COMPANIONS,
    Call,
    Case,
    Make,
    with_gradients,
)
from xpurt_tools.conformance.sweeps.shapes_operands import UNEQUAL, Operands

LINE = {
    "line": (2, 5, 37, 130),
    "outer": COMPANIONS,
    "inner": COMPANIONS,
}
FEW_LINES = {"line": (2, 5, 37, 130), "outer": (1, 3, 10), "inner": (1, 3, 10)}


def of_line(values: str = "normal", most: int = 4, operands: int = 1) -> Make:
    """The operands, and the number of the line's dimension."""

    def make(new: Operands, case: Case) -> tuple[Any, ...]:
        outer, inner = case.dims("outer"), case.dims("inner")
        shape = (*outer, case["line"], *inner)
        marks = len(outer) if values in ("distinct", "bool", "logits") else -1
        drawn = "normal" if values == "logits" else values
        found = [
            new(*shape, values=drawn, most=most, marks=marks) for _ in range(operands)
        ]
        return (*found, len(outer))

    return make


def line(
    name: str,
    kind: str,
    run: Callable[..., Any],
    *rows: str,
    values: str = "normal",
    operands: int = 1,
    axes: dict[str, tuple[int, ...]] = LINE,
    **more: Any,
) -> Call:
    make = of_line(values, operands=operands)
    return Call(name, kind, make, run, axes, rows or (name,), **more)


def ends(x: Tensor, d: int) -> tuple[int, ...]:
    """The line's dimension and the last one."""
    return tuple({d, x.dim() - 1})


EXACT: dict[str, Any] = {"values": "small", "rtol": 0.0}
INTEGERS = ("float32", "int64")


def softmax_backward(y: Tensor, grad: Tensor, d: int) -> Tensor:
    return torch._softmax_backward_data(grad, y, d, grad.dtype)


def log_softmax_backward(y: Tensor, grad: Tensor, d: int) -> Tensor:
    return torch._log_softmax_backward_data(grad, y, d, grad.dtype)


REDUCTIONS = (
    line("sum", "reductions", lambda x, d, **k: torch.sum(x, d, **k), takes_out=True,
         dtypes=INTEGERS, **EXACT),
    line("sum of two dimensions", "reductions", lambda x, d: x.sum(ends(x, d)), "sum", **EXACT),
    line("sum of all", "reductions", lambda x, d: x.sum(), "sum", **EXACT),
    line("sum of others", "reductions",
         lambda x, d: x.sum([k for k in range(x.dim()) if k != d]) if x.dim() > 1 else x.sum(),
         "sum", **EXACT),
    line("mean", "reductions", lambda x, d, **k: torch.mean(x, d, **k), values="small",
         takes_out=True),
    line("prod", "reductions", lambda x, d: x.prod(d), values="signs", rtol=0.0),
    line("amax", "reductions", lambda x, d, **k: torch.amax(x, d, **k), values="distinct",
         rtol=0.0, takes_out=True, dtypes=INTEGERS),
    line("amin", "reductions", lambda x, d: x.amin(d), values="distinct", rtol=0.0),
    line("max of all", "reductions", lambda x, d: (x.max(), x.min()), "max", "min",
         values="distinct", rtol=0.0),
    line("any", "reductions", lambda x, d: x.any(d), values="bool", dtypes=("bool",), rtol=0.0),
    line("all", "reductions", lambda x, d: (~x).all(d), values="bool", dtypes=("bool",), rtol=0.0),
    line("logsumexp", "reductions", lambda x, d: x.logsumexp(d), "amax", "sum", values="logits"),
    line("var", "reductions", lambda x, d: x.var(d, correction=0)),
    # A line of equal elements has the root of a rounding error.
    line("std", "reductions", lambda x, d: x.std(d, correction=0), layouts=UNEQUAL),
    line("var_mean", "reductions", lambda x, d: torch.var_mean(x, d, correction=0)),
    line("norm", "reductions", lambda x, d: torch.ops.aten.norm(x, 3, [d])),
    line("std_mean", "reductions", lambda x, d: torch.std_mean(x, d, correction=0),
         layouts=UNEQUAL),
    line("vector_norm", "reductions", lambda x, d: torch.linalg.vector_norm(x, 2, d),
         "linalg_vector_norm"),
    line("count_nonzero", "reductions", lambda x, d: torch.count_nonzero(x - 1, d),
         values="small", rtol=0.0),
    line("nansum", "reductions", lambda x, d: x.nansum(d), **EXACT),
)  # fmt: skip

SOFTMAXES = (
    line("softmax", "softmax", lambda x, d, **k: torch.softmax(x, d, **k), "_softmax",
         values="logits", takes_out=True),
    line("log_softmax", "softmax", lambda x, d, **k: torch.log_softmax(x, d, **k),
         "_log_softmax", values="logits", takes_out=True),
    line("softmax backward", "softmax", softmax_backward, "_softmax_backward_data",
         operands=2, rtol=1e-4),
    line("log_softmax backward", "softmax", log_softmax_backward, "_log_softmax_backward_data",
         operands=2, rtol=1e-4),
)  # fmt: skip

SCANS = (
    line("cumsum", "scans", lambda x, d, **k: torch.cumsum(x, d, **k), takes_out=True,
         dtypes=INTEGERS, **EXACT),
    line("cumprod", "scans", lambda x, d: x.cumprod(d), values="signs", rtol=0.0),
    line("cummax", "scans", lambda x, d: tuple(x.cummax(d)), "_cummax_helper",
         values="distinct", rtol=0.0),
    line("cummin", "scans", lambda x, d: tuple(x.cummin(d)), "_cummin_helper",
         values="distinct", rtol=0.0),
    line("logcumsumexp", "scans", lambda x, d: x.logcumsumexp(d), "_logcumsumexp"),
)  # fmt: skip

EXTREMES = (
    line("argmax", "extremes", lambda x, d: x.argmax(d), values="distinct", rtol=0.0),
    line("argmin", "extremes", lambda x, d: x.argmin(d), values="distinct", rtol=0.0),
    line("argmax of all", "extremes", lambda x, d: x.argmax(), "argmax", values="distinct",
         rtol=0.0),
    line("max", "extremes", lambda x, d: tuple(x.max(d)), values="distinct", rtol=0.0),
    line("min", "extremes", lambda x, d: tuple(x.min(d)), values="distinct", rtol=0.0),
    line("aminmax", "extremes", lambda x, d: tuple(x.aminmax(dim=d)), values="distinct",
         rtol=0.0),
)  # fmt: skip


def lookup(new: Operands, case: Case) -> tuple[Any, ...]:
    """A sorted sequence for each outer line, and numbers to look up in it."""
    outer = case.dims("outer")
    sequence = new(*outer, case["line"], values="rising")
    wanted = new(*outer, case["inner"], values="index", most=2 * case["line"] + 2)
    return sequence.contiguous(), wanted.to(new.dtype).contiguous()


SORTS = (
    line("sort", "sorting", lambda x, d: tuple(x.sort(dim=d, stable=True)), values="distinct",
         rtol=0.0, most=1 << 18),
    line("sort, descending, equal", "sorting",
         lambda x, d: tuple(x.sort(dim=d, stable=True, descending=True)), "sort", values="small",
         rtol=0.0, most=1 << 18),
    line("topk", "sorting", lambda x, d: tuple(x.topk(min(5, x.size(d)), d)), values="distinct",
         rtol=0.0, most=1 << 18),
    line("nanmedian", "sorting", lambda x, d: tuple(x.nanmedian(d)), values="distinct", rtol=0.0,
         most=1 << 18),
    line("median of all", "sorting", lambda x, d: (x.median(), x.nanmedian()), "median",
         "nanmedian", values="distinct", rtol=0.0, most=1 << 18),
    line("mode", "sorting", lambda x, d: x.mode(d).values, values="small", rtol=0.0,
         most=1 << 18),
    line("_unique", "sorting", lambda x, d: torch._unique(x)[0], values="small", rtol=0.0,
         most=1 << 18),
    line("unique_consecutive", "sorting",
         lambda x, d: torch.unique_consecutive(x, return_counts=True), values="small",
         rtol=0.0, most=1 << 16),
    line("unique of rows", "sorting", lambda x, d: torch.unique(x, dim=d), "unique_dim",
         values="small", rtol=0.0, most=1 << 12),
    line("kthvalue", "sorting", lambda x, d: tuple(x.kthvalue(x.size(d), d)),
         values="distinct", rtol=0.0, most=1 << 18),
    line("median", "sorting", lambda x, d: tuple(x.median(d)), values="distinct", rtol=0.0,
         most=1 << 18),
    line("unique", "sorting", lambda x, d: torch.unique(x, return_counts=True), "_unique2",
         values="small", rtol=0.0, most=1 << 18),
    Call("bucketize", "sorting", lambda new, case: lookup(new, case)[::-1],
         lambda x, b: torch.bucketize(x, b if b.dim() == 1 else b.flatten(0, -2)[0]),
         FEW_LINES, ("bucketize",)),
    Call("searchsorted", "sorting", lookup, torch.searchsorted, FEW_LINES,
         ("searchsorted", "xpurt::searchsorted")),
)  # fmt: skip

ALONG = (
    line("flip", "rearranging", lambda x, d: x.flip(d), rtol=0.0),
    line("roll", "rearranging", lambda x, d: x.roll(3, d), rtol=0.0),
    line("roll of all", "rearranging", lambda x, d: x.roll(-2), "roll", rtol=0.0),
    line("cat", "rearranging", lambda x, y, d: torch.cat([x, y[:1], y], d)
         if d == 0 else torch.cat([x, y], d), rtol=0.0, operands=2),
    line("stack", "rearranging", lambda x, y, d: torch.ops.aten._stack([x, y], d), "_stack", rtol=0.0,
         operands=2),
    line("repeat_interleave", "rearranging", lambda x, d: x.repeat_interleave(
         torch.arange(x.size(d), device=x.device) % 3, d), rtol=0.0),
    line("unfold backward", "rearranging", lambda x, d: torch.ops.aten.unfold_backward(
         x.unfold(d, 2, 1).contiguous(), x.shape, d, 2, 1), "unfold_backward"),
    line("renorm", "rearranging", lambda x, d: x.renorm(2, d, 1.0) if x.dim() > 1 else x + 0),
    line("glu", "rearranging", with_gradients(lambda x, d: F.glu(torch.cat([x, x + 1], d), d)),
         "glu", "glu_backward"),
)  # fmt: skip

LINES = (*REDUCTIONS, *SOFTMAXES, *SCANS, *EXTREMES, *SORTS, *ALONG)
