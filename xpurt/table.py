"""Plain text tables, for everything that xpurt prints as rows."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lines of equal columns: headings, a rule, and a line per row.

    A heading that begins with ">" sets its column to the right, as numbers want it.
    Raises ValueError for a row that is not as long as the headings.
    """
    lines = [[heading.removeprefix(">") for heading in headings]]
    lines += [[str(cell) for cell in row] for row in rows]
    for line in lines:
        if len(line) != len(headings):
            raise ValueError(f"a table of {len(headings)} columns got the row {line}")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    aligns = [">" if heading.startswith(">") else "<" for heading in headings]
    return "\n".join(
        "  ".join(
            f"{cell:{align}{width}}"
            for cell, align, width in zip(line, aligns, widths, strict=True)
        ).rstrip()
        for line in lines
    )


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
