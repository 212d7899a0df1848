"""Plain text tables, for everything that xpurt prints as rows."""

from collections.abc import Iterable, Sequence

_NARROWEST = 8  # characters of a column


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    width: int | None = None,
) -> str:
    """A table with aligned columns: headings, a rule, and one line per row.

    A heading that begins with ">" aligns its column right, for numbers.
    width: the largest number of characters of a line. Cells of the widest columns are
        broken at spaces to fit; a column never gets narrower than _NARROWEST.
    Raises ValueError for a row that is not as long as the headings.
    """
    # Imported late, since `import torch` loads this module and prints no table.
    from tabulate import SEPARATING_LINE, tabulate

    lines: list[Sequence[str]] = [[name.removeprefix(">") for name in headings]]
    lines += [[str(cell) for cell in row] for row in rows]
    for line in lines:
        if len(line) != len(headings):
            raise ValueError(f"a table of {len(headings)} columns got the row {line}")
    widths = None if width is None else _narrowed(lines, width)
    # The headings are passed as a row: tabulate makes columns with headings two
    # characters wider than necessary. Its rules above and below are cut off.
    drawn = tabulate(
        [lines[0], SEPARATING_LINE, *lines[1:]],
        tablefmt="simple",
        colalign=["right" if name.startswith(">") else "left" for name in headings],
        disable_numparse=True,
        maxcolwidths=widths,
    )
    return "\n".join(drawn.splitlines()[1:-1])


def html_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The same table in HTML, for notebooks."""
    from tabulate import tabulate

    drawn = tabulate(
        [[str(cell) for cell in row] for row in rows],
        headers=[name.removeprefix(">") for name in headings],
        tablefmt="html",
        colalign=["right" if name.startswith(">") else "left" for name in headings],
        disable_numparse=True,
    )
    return str(drawn)


def _narrowed(lines: Iterable[Sequence[str]], width: int) -> list[int]:
    """The widths of the columns; the widest are reduced until a line fits."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths


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
