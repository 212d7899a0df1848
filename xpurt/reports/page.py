"""Renders a page from a template, and writes it."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from xpurt.reports.data_table import Tone
from xpurt.reports.machine import Machine

if TYPE_CHECKING:
    from jinja2 import Environment

Body = Literal["conformance", "bench", "calibration", "prototype"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number at the beginning of the page, and its meaning."""

    value: str
    label: str
    tone: Tone = ""


def render_page(
    body: Body,
    title: str,
    figures: Sequence[Figure],
    machine: Machine,
    **content: object,
) -> str:
    """The text of a page. `content`: the variables of the body's template."""
    return (
        _environment()
        .get_template(f"{body}.html")
        .render(
            title=title,
            figures=figures,
            machine=machine,
            command=command_line(),
            written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            **content,
        )
    )


def write_page(path: Path, text: str) -> None:
    """Writes the text as UTF-8. Raises OSError."""
    path.write_text(text, encoding="utf-8")


def check_writable(path: Path) -> None:
    """Checks, before long work, that its result can be written. Raises OSError. Leaves
    no new file."""
    existed = path.exists()
    path.open("ab").close()
    if not existed:
        path.unlink()


def command_line() -> str:
    """The command line of this process, with the interpreter's name without its
    path."""
    interpreter, *rest = sys.orig_argv
    return shlex.join([Path(interpreter).name, *rest])


@cache
def _environment() -> "Environment":
    # Imported late, since few processes write a page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
