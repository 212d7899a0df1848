"""Tables of a page: what a reader sorts by a click, and filters."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "number", "choice"]
Tone = Literal["", "good", "bad", "warn", "muted"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    kind: "number" is set to the right and sorted by value; "choice" has few different
        values, and the page offers them in a list.
    """

    name: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of one cell.

    value: what a number is sorted by; None: the number that the text begins with.
    details: a longer text, which the reader unfolds.
    """

    text: str
    value: float | None = None
    tone: Tone = ""
    details: str = ""


@dataclass(frozen=True, slots=True)
class DataTable:
    """A table of a page.

    name: identifies it in the page; letters and hyphens.
    empty: the sentence that stands there if there are no rows.
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
        """A text alone is a cell. Raises ValueError for a row of another length."""
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
