"""Rows of ops that are computed by other ops, on devices whose memory the host can't
read.

Most are PyTorch's own decompositions (`torch._decomp`), which use whatever kernels the
ops in them have. An op needs kernels of its own only if the decomposition has too many
ops or is too slow.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from xpurt.kernels.kinds.row import NUMERIC, BaseRow, Kind

_NAMESPACE = "xpurt_decomposed"
_library: torch.library.Library | None = None
_defined: set[str] = set()  # overloads with out= and in place share a definition


@dataclass(frozen=True)
class Decomposed(BaseRow):
    """An op computed by `function`, or by PyTorch's decomposition of each overload.

    The function takes the arguments of the overloads that return new tensors, as in the
    schema. For in-place overloads and `out=` its results are copied. The function of an
    op whose name ends with "_" writes to its arguments. The row is for the `overloads`;
    for all if there are none. With `same_type`, calls with tensors of other types than
    the first one's, results included, are left to PyTorch's kernel. With `of_kind`, so
    are calls whose first tensor has a type that `kind` lacks, or any tensor a complex one
    that it lacks. Most ops refuse an
    `out=` of another floating-point type, so such calls are left to it, too, unless the
    op `converts` its results. With `native_on_cpu` the policy `auto` takes PyTorch's
    kernel on a CPU without trying the function: a library of the processor's vendor
    (LAPACK, a Fourier transform) computes such an op. `result` is the type of an
    `out=` by that of the first tensor: "same", "complex", or "real". An `out=` of
    another size becomes contiguous; if the row `lays_out`, as PyTorch's structured ops
    do, it takes the strides of a new result.
    """

    template: ClassVar[str] = "decomposed"

    aten: str
    function: Callable[..., Any] | None = None
    kind: Kind = NUMERIC
    overloads: tuple[str, ...] = ()
    same_type: bool = False
    of_kind: bool = False
    converts: bool = False
    native_on_cpu: bool = False
    result: str = "same"
    lays_out: bool = False
    flops: float = 1

    def described(self) -> dict[str, object]:
        return {
            "same_type": self.same_type,
            "of_kind": self.of_kind,
            "converts": self.converts,
            "native_on_cpu": self.native_on_cpu,
            "result": self.result,
            "lays_out": self.lays_out,
        }

    def form(self, overload: str) -> Callable[..., Any] | None:
        """The function that computes an overload; None if there is none."""
        if self.function is not None:
            return self.function
        from torch._decomp import decomposition_table  # takes long to import

        packet = getattr(torch.ops.aten, self.aten)
        return decomposition_table.get(getattr(packet, overload or "default"))


def define(row: Decomposed, name: str, overload: str) -> str:
    """Defines an op with the schema of the overload and the row's function, and returns
    its name. Raises RuntimeError if the overload has no decomposition."""
    global _library
    form = row.form(overload)
    if form is None:
        raise RuntimeError(f"PyTorch has no decomposition of {name}.{overload}")
    if _library is None:
        _library = torch.library.Library(_NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
    own = name.replace("aten::", f"{_NAMESPACE}::")
    full = f"{own}.{overload}" if overload else own
    if full in _defined:
        return own
    _defined.add(full)
    schema = torch._C._get_schema(name, overload)
    _library.define(str(schema).removeprefix("aten::"))  # type: ignore[no-untyped-call]
    _library.impl(full, form, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    # The op has resolved conjugate views already, unless it takes them as they are.
    for key in ("Conjugate", "Negative"):
        _library.impl(full, torch.library.fallthrough_kernel, key)  # type: ignore[no-untyped-call]
    return own


ROWS = (Decomposed("glu"),)
