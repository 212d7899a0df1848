"""Makes a page from a template, and writes it."""

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

Body = Literal["conformance", "bench", "calibration"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that the page begins with, and what it counts."""

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
    """The text of a page. `content`: what the template of the body names."""
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
    """Raises OSError."""
    path.write_text(text, encoding="utf-8")


def check_writable(path: Path) -> None:
    """Before long work whose result goes there. Raises OSError, and leaves no file."""
    existed = path.exists()
    path.open("ab").close()
    if not existed:
        path.unlink()


def command_line() -> str:
    """How this process was started, with the interpreter's name alone."""
    interpreter, *rest = sys.orig_argv
    return shlex.join([Path(interpreter).name, *rest])


@cache
def _environment() -> "Environment":
    # Here, since few processes write a page.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
