"""Tables of a page, which a reader can sort by a click, and filter."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "number", "choice"]
Tone = Literal["", "good", "bad", "warn", "muted"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    kind: "number" is right-aligned and sorted by value; "choice" has few different
        values, which the page offers in a list.
    """

    name: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of one cell.

    value: the sort key of a number; None: the number at the beginning of the text.
    details: a longer text, which the reader can unfold.
    """

    text: str
    value: float | None = None
    tone: Tone = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table of a page.

    name: identifies the table in the page; letters and hyphens.
    empty: the sentence that is shown if there are no rows.
    """

    name: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...] = field(repr=False)
    empty: str = "No rows."

    @staticmethod
    def of(
        name: str,
        columns: Iterable[Column],
        rows: Iterable[Iterable[Cell | str]],
        empty: str = "No rows.",
    ) -> "DataTable":
        """Makes a table; a str becomes a cell. Raises ValueError if a row has another
        length than the columns."""
        columns = tuple(columns)
        made = []
        for row in rows:
            cells = tuple(Cell(c) if isinstance(c, str) else c for c in row)
            if len(cells) != len(columns):
                raise ValueError(
                    f"the table {name} of {len(columns)} columns got {len(cells)} cells"
                )
            made.append(cells)
        return DataTable(name, columns, tuple(made), empty)
