"""The arguments of the command, and the files that it writes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xpurt.reports import check_writable
from xpurt.text.markdown_section import BadMarkers
from xpurt_tools.bench import plot
from xpurt_tools.bench.row import BadRequest

# The reason of a row that did not begin in time.
OVER = "not measured: the time was over"
Writer = Callable[[Path], object]


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of the command.

    suites: names; empty: all. rows: a pattern of row names, such as "add*". minutes: no
    row begins later.
    """

    suites: tuple[str, ...] = ()
    rows: str = "*"
    mapping: str = "CPU"
    quick: bool = False
    minutes: float = math.inf
    json: Path | None = None
    html: Path | None = None
    plot: Path | None = None
    markdown: Path | None = None


def check_files(request: Request, check_page: Callable[[str], object]) -> None:
    """Raises BadRequest and MissingExtra for files that could not be written later.

    check_page: raises BadMarkers for the text of a page without the sections.
    """
    if request.plot is not None:
        known = plot.suffixes()
        if request.plot.suffix not in known:
            raise BadRequest(
                f"{request.plot}: matplotlib writes {', '.join(sorted(known))}"
            )
    if request.markdown is not None:
        if request.quick or request.rows != "*":
            raise BadRequest("--markdown wants whole suites: no --quick, no --rows")
        if request.markdown.exists():
            try:
                check_page(request.markdown.read_text())
            except (OSError, UnicodeDecodeError, BadMarkers) as error:
                raise BadRequest(f"{request.markdown}: {error}") from None
    for path in (request.json, request.html, request.plot, request.markdown):
        if path is not None:
            try:
                check_writable(path)
            except OSError as error:
                raise BadRequest(f"{path} can't be written: {error.strerror}") from None


def write_files(writers: Sequence[tuple[Path | None, Writer]]) -> None:
    """Calls each writer that has a path. Raises BadRequest if it can't be written."""
    for path, write in writers:
        if path is not None:
            try:
                write(path)
            except OSError as error:
                raise BadRequest(f"{path} can't be written: {error}") from None
