"""Compares the ops that xpurt's kernels are written for with those of the installed PyTorch.

    python release/check_ops.py            prints the ops that differ
    python release/check_ops.py --update   writes op_schemas.txt; needs a built xpurt

op_schemas.txt has the schema of each op that a row is bound to, or that a function of C++
is registered for by name. A row reads arguments by their place and their name, and the
dispatcher refuses a function whose types differ while the extension is loaded: one op, and
no import. So the build stops first, with all of them. (A function that is registered by
PyTorch's own type, at::_ops, is checked by the compiler.)

A line is for every series of PyTorch, or for those after its "#".
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from package_version import ROOT, SERIES, installed_pytorch, series_to_build_for

FILE = Path(__file__).with_name("op_schemas.txt")
CSRC = ROOT / "xpurt" / "csrc"

Schemas = dict[str, str]
"""Schemas by the name with its overload: "aten::add.Tensor"."""


def name_of(schema: str) -> str:
    """The name with its overload: "aten::add.Tensor"."""
    return schema.partition("(")[0]


def recorded(series: str, lines: Iterable[str]) -> Schemas:
    """The schemas that the file has for a series."""
    found = {}
    for line in lines:
        schema, _, only = line.rstrip("\n").partition("  # ")
        if not only or series in only.split():
            found[name_of(schema)] = schema
    return found


def lines_of(by_series: dict[str, Schemas]) -> list[str]:
    """The lines of the file, sorted."""
    having: dict[str, list[str]] = {}
    for series in SERIES:
        for schema in by_series.get(series, {}).values():
            having.setdefault(schema, []).append(series)
    return sorted(
        schema if len(which) == len(SERIES) else f"{schema}  # {' '.join(which)}"
        for schema, which in having.items()
    )


def differences(wanted: Schemas, installed: Schemas) -> list[str]:
    """A line for each op that is gone or has another schema."""
    return [
        f"{schema}\n    is now {installed.get(name, 'gone')}"
        for name, schema in sorted(wanted.items())
        if installed.get(name) != schema
    ]


def complaint(lines: list[str]) -> str | None:
    """What the build says of the differences; None if there are none."""
    if not lines:
        return None
    return (
        f"PyTorch {installed_pytorch()} has other ops than xpurt's kernels are written "
        "for. Change those kernels, then run release/check_ops.py --update. "
        f"{len(lines)} differ:\n" + "\n".join(lines)
    )


def installed_schemas() -> Schemas:
    """Those of the PyTorch that is imported."""
    import torch

    schemas = map(str, torch._C._jit_get_all_schemas())
    return {name_of(schema): schema for schema in schemas}


def fault() -> str | None:
    """The complaint about the installed PyTorch; None if all is as recorded."""
    series = series_to_build_for()
    if series is None:
        return None  # setup.py refuses it anyway
    wanted = recorded(series, FILE.read_text().splitlines())
    return complaint(differences(wanted, installed_schemas()))


def ops_registered_by_name(source: str) -> Iterator[str]:
    """The ops of PyTorch that a C++ source registers functions for."""
    # Functions that such blocks call, with the library as argument, are for aten.
    begin = r"(?:TORCH_LIBRARY_IMPL\((\w+), \w+, m\)|\(torch::Library& m\)) \{"
    for block in re.finditer(begin + r"(.*?)^\}", source, re.M | re.S):
        library, body = block[1] or "aten", block[2]
        if library in ("_", "xpurt"):
            continue
        for name in re.findall(r"m\.impl\(\s*\"([\w.]+)\"", body):
            yield f"{library}::{name}"
    # A function that registers the ops of a library for several device types.
    for block in re.finditer(
        r"^void register_(\w+)_ops\((.*?)^\}", source, re.M | re.S
    ):
        for name in re.findall(r"\badd\(\"([\w.]+)\"", block[2]):
            yield f"{block[1]}::{name}"


def ops_that_are_used() -> set[str]:
    """Imports xpurt, whose rows know which overloads they are bound to."""
    import xpurt  # noqa: F401
    from xpurt import _C
    from xpurt.kernels import registration

    registration.register()
    bound: Any = _C.bound_overloads()
    found = {f"{op}.{overload}".rstrip(".") for _, op, overload in bound}
    for path in CSRC.rglob("*.cpp"):
        found |= set(ops_registered_by_name(path.read_text()))
    return {name for name in found if not name.startswith("xpurt::")}


def update() -> None:
    """Writes the file anew for the series that is installed, and keeps the others."""
    installed, used = installed_schemas(), ops_that_are_used()
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    by_series = {series: recorded(series, lines) for series in SERIES}
    for series, before in by_series.items():
        by_series[series] = {n: s for n, s in before.items() if n in used}
    present = series_to_build_for()
    assert present is not None
    by_series[present] = {n: installed[n] for n in used if n in installed}
    FILE.write_text("\n".join(lines_of(by_series)) + "\n")


if __name__ == "__main__":
    if "--update" in sys.argv[1:]:
        update()
    else:
        sys.exit(fault())
