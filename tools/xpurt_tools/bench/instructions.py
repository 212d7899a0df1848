"""Instructions of a suite's rows, which are the same beside any other program.

valgrind's callgrind runs the calls in a simulated processor (Nethercote and Seward,
Valgrind: A Framework for Heavyweight Dynamic Binary Instrumentation, 2007), and counts the
instructions of all threads. Where a processor takes longer for one of them, as for memory
that is in no cache, this does not show.
"""

import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from xpurt.reports import describe_machine
from xpurt.text.markdown_section import BadMarkers, head_of, line_of
from xpurt.text.table import table
from xpurt_tools.bench import markdown
from xpurt_tools.bench.line_process import ONE_CORE
from xpurt_tools.bench.request import Request
from xpurt_tools.bench.row import BadRequest
from xpurt_tools.bench.suites import SUITES

CALLS: Final = 50  # that are counted

_MARKS: Final = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_ZERO_STATS; }
void end(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }
"""
_WAY_OUT: Final = (
    "Install valgrind and a C compiler (Debian, Ubuntu: apt install valgrind gcc)"
)
_HEADINGS: Final = ("row", ">CPU", ">xpu", ">ratio")


@dataclass(frozen=True, slots=True)
class Counted:
    """Instructions of a call on CPU tensors and on xpu."""

    name: str
    cpu: int
    xpu: int

    @property
    def ratio(self) -> float:
        return self.xpu / self.cpu


def count(suite: str, pattern: str = "*", mapping: str = "CPU") -> list[Counted]:
    """Of the rows of these names. Takes minutes.

    Raises BadRequest if valgrind or a compiler is missing, or the process failed.
    """
    if shutil.which("valgrind") is None:
        raise BadRequest(
            f"instructions are counted by valgrind; found none. {_WAY_OUT}"
        )
    with TemporaryDirectory() as made:
        folder = Path(made)
        counts = folder / "counts"
        command = [
            *("valgrind", "--quiet", "--tool=callgrind", "--combine-dumps=yes"),
            f"--callgrind-out-file={counts}",
            *(sys.executable, "-m", "xpurt_tools.bench.counted_calls"),
            *(str(_library(folder)), mapping, suite, pattern, str(CALLS)),
        ]
        variables = [f"{name}={value}" for name, value in ONE_CORE.items()]
        if code := subprocess.run(["env", *variables, *command]).returncode:
            raise BadRequest(f"the process under valgrind ended with {code}; see above")
        return list(rows_in(counts.read_text()))


def _library(folder: Path) -> Path:
    """The marks that callgrind sees in a call from Python."""
    source, library = folder / "marks.c", folder / "marks.so"
    source.write_text(_MARKS)
    compiler = shutil.which("cc") or shutil.which("gcc")
    command = [
        str(compiler),
        "-O1",
        "-shared",
        "-fPIC",
        str(source),
        "-o",
        str(library),
    ]
    if compiler is None or subprocess.run(command).returncode:
        raise BadRequest(f"the marks for valgrind can't be compiled. {_WAY_OUT}")
    return library


def rows_in(counts: str) -> Iterator[Counted]:
    """From what callgrind wrote."""
    found = re.findall(
        r"^desc: Trigger: Client Request: (cpu|xpu) ([^\n]*)\n.*?^summary: (\d+)",
        counts,
        re.MULTILINE | re.DOTALL,
    )
    calls = {(kind, name): int(number) // CALLS for kind, name, number in found}
    for kind, name in calls:
        if kind == "cpu" and ("xpu", name) in calls:
            yield Counted(name, calls[kind, name], calls["xpu", name])


def run_instructions(request: Request) -> int:
    """Prints the table of one suite, or writes it into a page, between the marks of
    "SUITE-instructions".

    Raises BadRequest for other requests, and as `count` does.
    """
    (suite, *more) = request.suites or ("",)
    if more or not suite or request != _request_of(request):
        raise BadRequest(
            "--instructions takes --suite with one suite, --rows, --mapping and --markdown"
        )
    if suite not in [each.name for each in SUITES]:
        raise BadRequest(f"no suite {suite!r}")
    rows = count(suite, request.rows, request.mapping)
    if not rows:
        raise BadRequest(f"no row of {suite} is called {request.rows!r}")
    if request.markdown is None:
        print(f"{table(_HEADINGS, map(_cells, rows))}\n\n{_verdict(rows)}")
        return 0
    section = markdown.section(f"{suite}-instructions")
    try:
        section.write(_lines(rows), request.markdown)
    except (OSError, BadMarkers) as error:
        raise BadRequest(f"{request.markdown}: {error}") from None
    return 0


def _request_of(given: Request) -> Request:
    return Request(
        suites=given.suites,
        rows=given.rows,
        mapping=given.mapping,
        markdown=given.markdown,
    )


def _lines(rows: Sequence[Counted]) -> list[str]:
    machine = describe_machine()
    return [
        f"{machine.date}, {machine.processor}, PyTorch {machine.torch}. {_verdict(rows)}",
        "",
        *head_of(_HEADINGS),
        *(line_of(_cells(each)) for each in rows),
    ]


def _verdict(rows: Sequence[Counted]) -> str:
    mean = statistics.geometric_mean(each.ratio for each in rows)
    most = max(rows, key=lambda each: each.ratio)
    return (
        f"Instructions of {len(rows)} rows, xpu over the CPU: {mean:.3f} in the geometric "
        f"mean, at most {most.ratio:.2f} ({most.name})."
    )


def _cells(row: Counted) -> tuple[str, ...]:
    return row.name, f"{row.cpu:,}", f"{row.xpu:,}", f"{row.ratio:.3f}"
