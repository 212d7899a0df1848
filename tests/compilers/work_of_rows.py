"""How many instructions the compilers of GPUs make for an element of a pointwise row, beside
the row's `flops`, from which AUTO guesses the time of a call that was never measured.

    python tests/compilers/work_of_rows.py [--rows NAME ...]

The kernels are those for float32 and contiguous operands, of Intel's and of AMD's compiler,
each less the kernel that copies; the figure is their geometric mean. An instruction counts
once if it is run, or may be. The exit status is 1 if a row of more than a few instructions
has less than half or more than twice of the figure, unless UNCOUNTED has a reason.
"""

import argparse
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.append(str(Path(__file__).parents[1]))  # of kinds_of_gpus.py

from chips import amd_assembly, intel_assembly
from recorded_programs import Program

from xpurt.kernels.kinds.row import Row
from xpurt.kernels.rows.table import ROWS
from xpurt.kernels.sources.source import DeviceTraits, Source, pointwise_source

INTEL, AMD = "bmg", "gfx1100"
FEW: Final = 10
_KINDS: Final = ("j0", "j1", "y0", "y1")
_RARE: Final = "most of it is for large arguments, which are rare"
UNCOUNTED: Final = {
    **dict.fromkeys(("sin", "cos", "tan", "pow", "floor_divide"), _RARE),
    **dict.fromkeys((f"special_bessel_{each}" for each in _KINDS), _RARE),
    "special_spherical_bessel_j0": _RARE,
}
_GPU: Final = DeviceTraits(
    sub_group=0,
    has_wide_sub_groups=False,
    max_work_group=256,
    local_memory=1 << 16,
    vector_width=1,
)


@dataclass(frozen=True, slots=True)
class Counted:
    """Instructions for an element, less those of a copy. amd: 0 if they are not known."""

    row: Row
    intel: float
    amd: float

    @property
    def figure(self) -> float:
        intel = max(self.intel, 1)
        return math.sqrt(intel * max(self.amd, 1)) if self.amd else intel

    @property
    def is_off(self) -> bool:
        least, most = sorted((self.row.flops, self.figure))
        return most > FEW and most > 2 * least

    @property
    def reason(self) -> str:
        return UNCOUNTED.get(self.row.aten, "")


def source_of(row: Row) -> Source:
    operands = "".join(
        "t" if k in row.conditions else "f"
        for k in range(max(row.uses, default=-1) + 1)
    )
    stored_as = "t" if row.kind.result == "boolean" else "f"
    fields = [
        "1" + "1" * (len(row.uses) + 1),
        operands,
        f"{stored_as}f",
        "P" * len(row.params),
        next(iter(row.expressions)),
    ]
    return pointwise_source(row, fields, _GPU)


def intel_instructions(text: str, lanes: int) -> float:
    """Of one work-item: an instruction of 16 lanes is half of one in a kernel of 32, and
    so is one of fewer lanes."""
    found = re.findall(r"^\s*(?:\(.*?\)\s*)?([a-z][\w.]*)\s+\((\d+)\|", text, re.M)
    return sum(max(int(wide), 16) for name, wide in found if name != "illegal") / lanes


def amd_instructions(text: str, kernel: str) -> float:
    """Those of vectors: others run beside them. 0 if the kernel calls a function."""
    body = text.partition(f"\n{kernel}:")[2].partition("s_endpgm")[0]
    if "s_swappc" in body:
        return 0
    return len(re.findall(r"^\tv_", body, re.M))


def counted(rows: Iterable[Row]) -> list[Counted]:
    def counts(row: Row) -> tuple[float, float]:
        source = source_of(row)
        intel = Program("-cl-std=CL3.0 -DXPURT_ARGUMENTS_ONLY", source.text)
        amd = Program("-cl-std=CL2.0 -DXPURT_ARGUMENTS_ONLY", source.text)
        return (
            intel_instructions(*intel_assembly(intel, INTEL, source.entry)),
            amd_instructions(amd_assembly(amd, AMD), source.entry),
        )

    (copy,) = (row for row in pointwise_rows() if row.aten == "copy_")
    wanted = [copy, *rows]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        of_copy, *others = pool.map(counts, wanted)
    return [
        Counted(row, intel - of_copy[0], max(amd - of_copy[1], 1) if amd else 0)
        for row, (intel, amd) in zip(wanted[1:], others, strict=True)
    ]


def pointwise_rows() -> list[Row]:
    return [row for row in ROWS if isinstance(row, Row) and "f" in row.dtypes]


def off(names: Sequence[str] | None) -> list[str]:
    """What is wrong with the rows of these names, or with all. Prints all figures."""
    rows = [row for row in pointwise_rows() if names is None or row.aten in names]
    found = counted(rows)
    print("instructions for an element: row, its flops; figure, Intel's, AMD's")
    for each in found:
        counts = f"{each.figure:.0f}, {each.intel:.0f}, {each.amd:.0f}"
        print(f"{each.row.aten}, {each.row.flops}; {counts}  {each.reason}")
    return [
        f"{each.row.aten} has flops={each.row.flops}, compilers make {each.figure:.0f}"
        for each in found
        if each.is_off and not each.reason
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="these alone")
    found = off(parser.parse_args().rows)
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
