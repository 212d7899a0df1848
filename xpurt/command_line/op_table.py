"""`python -m xpurt ops`: every op that has a row, as text or as docs/ops.md."""

from collections import Counter
from collections.abc import Sequence

from xpurt.kernels import Entry, op_entries
from xpurt.text.markdown_section import head_of, line_of
from xpurt.text.table import table

HEADINGS = ("op", "overloads", "kind", "dtypes", "file")
# Types that are listed by one name.
GROUPS = (
    ("floats", ("float32", "float64", "float16", "bfloat16")),
    ("integers", ("int8", "int16", "int32", "int64", "uint8")),
)
KINDS = {
    "pointwise": "an expression of one element of each operand",
    "reduction": "an associative function along dimensions",
    "lines": "a normalization of lines, in one kernel",
    "oneDNN, or tiles": "a oneDNN primitive, and where oneDNN declines the device a "
    "kernel of tiles",
    "custom kernel": "kernels written out, once per element or line",
    "oneDNN, or a custom kernel": "a oneDNN primitive on a CPU in float32, and elsewhere a custom kernel",
    "convolution": "a oneDNN primitive, and elsewhere by way of matrix products",
    "attention": "oneDNN's products with a kernel between them, or tiles",
    "recurrent": "a oneDNN primitive for all steps, and elsewhere the cells",
    "decomposed": "by way of other ops, on their kernels",
}


def op_table(width: int | None = None) -> str:
    """The table as text. `width`: the largest number of characters in a line."""
    return table(HEADINGS, (_cells(entry) for entry in op_entries()), width)


def op_page() -> str:
    """The text of docs/ops.md."""
    entries = op_entries()
    ops = {entry.op for entry in entries if "::" not in entry.op}
    own = {entry.op for entry in entries} - ops
    overloads = sum(len(entry.overloads) for entry in entries)
    counts = Counter(entry.kind for entry in entries)
    lines = [
        "# Ops with kernels on SYCL queues",
        "",
        "Written by `python -m xpurt ops --markdown docs/ops.md`, from the rows in",
        "`xpurt/kernels`. An op that is not here runs as PyTorch's own CPU kernel: on the",
        "same bytes where the host can read them, else on copies.",
        "",
        f"{len(ops)} ops of PyTorch, and {len(own)} of xpurt's own that others are made of:",
        f"{len(entries)} rows, for {overloads:,} overloads.",
        "",
        *head_of(("kind", ">rows", "")),
        *(line_of((k, str(n), KINDS.get(k, ""))) for k, n in counts.most_common()),
        "",
        "An overload `default` is the one without a name; those that end in `_` are in",
        "place. The dtypes are those of the computation.",
        "",
        *head_of(HEADINGS),
        *(line_of(_cells(entry)) for entry in entries),
    ]
    return "".join(f"{line}\n" for line in lines)


def _cells(entry: Entry) -> Sequence[str]:
    return (
        entry.op,
        ", ".join(_named(each) for each in entry.overloads),
        entry.kind,
        _grouped(entry.dtypes),
        entry.file,
    )


def _named(overload: str) -> str:
    """The name of an overload; an in-place one, "_Tensor", becomes "Tensor_"."""
    if overload.startswith("_"):
        return f"{overload[1:] or 'default'}_"
    return overload or "default"


def _grouped(dtypes: Sequence[str]) -> str:
    left = list(dtypes)
    found = []
    for name, group in GROUPS:
        if set(group) <= set(left):
            found.append(name)
            left = [each for each in left if each not in group]
    return ", ".join(found + left)
