"""Plain text tables, for everything that xpurt prints as rows."""

import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest

_NARROWEST = 8  # characters, of a column


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    width: int | None = None,
) -> str:
    """Lines of equal columns: headings, a rule, and a line per row.

    A heading that begins with ">" sets its column to the right, as numbers want it.
    width: characters of a line at most. Cells of the widest columns then go on below,
        broken at spaces; a column never gets narrower than _NARROWEST.
    Raises ValueError for a row that is not as long as the headings.
    """
    lines: list[Sequence[str]] = [[name.removeprefix(">") for name in headings]]
    lines += [[str(cell) for cell in row] for row in rows]
    for line in lines:
        if len(line) != len(headings):
            raise ValueError(f"a table of {len(headings)} columns got the row {line}")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if width is not None:
        _narrow(widths, width)
        lines = [part for line in lines for part in _wrapped(line, widths)]
    lines.insert(1, ["-" * each for each in widths])
    aligns = [">" if heading.startswith(">") else "<" for heading in headings]
    return "\n".join(
        "  ".join(
            f"{cell:{align}{wide}}"
            for cell, align, wide in zip(line, aligns, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _narrow(widths: list[int], width: int) -> None:
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1


def _wrapped(line: Sequence[str], widths: Sequence[int]) -> Iterable[Sequence[str]]:
    cells = [textwrap.wrap(c, w) or [""] for c, w in zip(line, widths, strict=True)]
    return zip_longest(*cells, fillvalue="")


def size(size_bytes: int) -> str:
    """A size with a binary unit: 512 B, 1.5 KiB, 16.0 GiB."""
    if abs(size_bytes) < 1024:
        return f"{size_bytes} B"
    value = size_bytes / 1024
    for unit in ("KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
