"""All suites, one process after the other, within a given time: the tables of a machine."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from xpurt.reports import check_writable
from xpurt_tools.bench.auto import AUTO
from xpurt_tools.bench.calibration_loop import TOO_BUSY
from xpurt_tools.bench.line_process import ONE_CORE
from xpurt_tools.bench.markdown import empty_page
from xpurt_tools.bench.request import OVER
from xpurt_tools.bench.row import BadRequest, Row, Suite
from xpurt_tools.bench.suites import SUITES

MINUTES: Final = 40.0
# Of all rows, on the pages of the folder.
PAGES: Final = ("performance.md", "auto.md")
# What a row takes beside a short one: of a whole network, and of the suite auto in all.
LONG, AUTO_PARTS = 6, 80
LEAST_MINUTES = 0.5

Start = Callable[["Part", Sequence[str]], int]


@dataclass(frozen=True, slots=True)
class Part:
    """A process that measures a suite.

    parts: the share of time, beside the other suites'. variables: beside those of this
    process. one_core: it may use one core alone.
    """

    suite: str
    parts: int
    mapping: str = "CPU"
    variables: Mapping[str, str] = field(default_factory=dict)
    one_core: bool = False


def parts_of(suites: Sequence[Suite]) -> Iterator[Part]:
    """Suites with all ops in OpenCL C beside eager xpu get the virtual GPU, and others
    with limits for processor time one thread."""
    for suite in suites:
        parts = sum(map(_parts, suite.rows))
        if suite.beside == "eager":
            yield Part(suite.name, parts, "GPU", {"XPURT_VIRTUAL_GPU": "strict"})
        elif suite.processor:
            yield Part(suite.name, parts, variables=ONE_CORE, one_core=True)
        else:
            yield Part(suite.name, parts)
    yield Part(AUTO, AUTO_PARTS)


def _parts(row: Row) -> int:
    return LONG if row.long or row.compiled else 1


def run_all(
    folder: Path,
    minutes: float = MINUTES,
    suites: Sequence[Suite] = SUITES,
    start: Start | None = None,
) -> int:
    """Writes a table per suite into `folder`, and prints the rows that were not judged.
    Returns 0 if each suite's process ended well.

    A suite gets its share of the time that is left. start: runs the command of a part, in
    tests.

    Raises BadRequest if the folder can't be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in PAGES:
            check_writable(folder / name)
    except OSError as error:
        raise BadRequest(f"{folder} can't be written: {error.strerror}") from None
    for name in PAGES:
        (folder / name).unlink(missing_ok=True)  # the page of another run
    (folder / PAGES[0]).write_text(empty_page([suite.name for suite in suites]))
    end = time.monotonic() + 60 * minutes
    parts = list(parts_of(suites))
    failed, unjudged = [], []
    for place, part in enumerate(parts):
        share = part.parts / sum(each.parts for each in parts[place:])
        own = max(LEAST_MINUTES, share * (end - time.monotonic()) / 60)
        numbers = folder / f"{part.suite}.json"
        numbers.unlink(missing_ok=True)
        code = (start or _start)(part, _command(part, folder, own))
        if code or not numbers.exists():
            failed.append(f"{part.suite}: the process failed")
        else:
            unjudged += _unjudged(json.loads(numbers.read_text()), part.suite)
    text = "\n".join(failed + unjudged or ["every row was judged"])
    (folder / "not_judged.txt").write_text(f"{text}\n")
    print(f"\nNot judged:\n{text}")
    return 1 if failed else 0


def _command(part: Part, folder: Path, minutes: float) -> list[str]:
    page = PAGES[part.suite == AUTO]
    return [
        *(sys.executable, "-m", "xpurt", "bench", "--suite", part.suite),
        *([] if part.suite == AUTO else ["--mapping", part.mapping]),
        *("--minutes", f"{minutes:.2f}"),
        *(
            "--json",
            str(folder / f"{part.suite}.json"),
            "--markdown",
            str(folder / page),
        ),
    ]


def _start(part: Part, command: Sequence[str]) -> int:
    cores = sorted(os.sched_getaffinity(0))
    pinned = ["taskset", "-c", str(cores[-1])] if part.one_core else []
    variables = {**os.environ, **part.variables}
    return subprocess.run([*pinned, *command], env=variables).returncode


def _unjudged(numbers: dict[str, Any], name: str) -> list[str]:
    """A line for each row, with the reason."""
    if name == AUTO:
        cases = numbers["cases"]
        busy = [each["case"] for each in cases if each["verdict"] == TOO_BUSY]
        return [
            *(f"{name}: {case}: {TOO_BUSY}" for case in busy),
            *(f"{name}: {case}: {OVER}" for case in numbers["not_measured"]),
        ]
    (suite,) = numbers["suites"]
    rows = suite["rows"]
    return [
        *(f"{name}: {row}: {TOO_BUSY}" for row in suite["disturbed"]),
        *(f"{name}: {row['name']}: {row['error']}" for row in rows if row["error"]),
    ]
