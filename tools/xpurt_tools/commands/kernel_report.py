"""Whose kernel each op of a device type has, as text and as a page."""

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from xpurt.errors import nearest
from xpurt.prototype import KernelRow
from xpurt.reports import (
    Cell,
    Column,
    DataTable,
    Figure,
    Tone,
    describe_machine,
    render_page,
    write_page,
)
from xpurt.text.table import table

WHOSE = ("vendor", "alias", "composite", "PyTorch", "none")
_TONES: dict[str, Tone] = {"vendor": "good", "none": "muted"}


def chosen(
    rows: Sequence[KernelRow],
    keys: Sequence[str],
    whose: Sequence[str],
    ops: Sequence[str],
) -> list[KernelRow]:
    """The rows of these keys and owners whose op matches a pattern. No keys: all; no
    owners: the vendor. Raises ValueError for a key that the type does not have."""
    known = list(dict.fromkeys(row.key for row in rows))
    for key in keys:
        if key not in known:
            near = nearest(key, known)
            meant = f' Did you mean "{near}"?' if near else ""
            raise ValueError(
                f"no key {key!r} here; there are {', '.join(known)}.{meant}"
            )
    return [
        row
        for row in rows
        if row.key in (keys or known)
        and row.whose in (whose or ("vendor",))
        and any(fnmatchcase(row.op, each) for each in ops)
    ]


def summary(rows: Sequence[KernelRow]) -> str:
    """A line per key: how many ops have a kernel of whom."""
    headings = ("key", *(f">{each}" for each in WHOSE))
    return table(headings, _counts(rows))


def listing(rows: Sequence[KernelRow]) -> str:
    return table(("op", "key", "whose"), ((r.op, r.key, r.whose) for r in rows))


def write(path: Path, name: str, rows: Sequence[KernelRow]) -> None:
    """Writes the page. Raises OSError."""
    write_page(path, page(name, rows))


def page(name: str, rows: Sequence[KernelRow]) -> str:
    """The page of the device `name`. A table lists what has a kernel."""
    own = [row for row in rows if row.whose == "vendor"]
    figures = [
        Figure(f"{len({row.op for row in own}):,}", "ops have a kernel of the vendor"),
        *(
            Figure(f"{sum(row.key.startswith(prefix) for row in own):,}", text)
            for prefix, text in (
                ("Autograd", "derivatives are the vendor's"),
                ("Sparse", "kernels of sparse tensors"),
                ("Quantized", "kernels of quantized tensors"),
            )
        ),
    ]
    counts = DataTable.of(
        "sums",
        (Column("key"), *(Column(each, "number") for each in WHOSE)),
        _counts(rows),
    )
    listed = DataTable.of(
        "ops",
        (Column("op"), Column("key", "choice"), Column("whose", "choice")),
        [
            (row.op, row.key, Cell(row.whose, tone=_TONES.get(row.whose, "")))
            for row in rows
            if row.whose != "none"
        ],
    )
    return render_page(
        "prototype",
        f"Kernels of {name}",
        figures,
        describe_machine(),
        sums=counts,
        ops=listed,
    )


def _counts(rows: Sequence[KernelRow]) -> list[tuple[str, ...]]:
    found = Counter((row.key, row.whose) for row in rows)
    keys = dict.fromkeys(row.key for row in rows)
    return [(key, *(str(found[key, each]) for each in WHOSE)) for key in keys]
