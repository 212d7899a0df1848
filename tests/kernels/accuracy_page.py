"""Writes the table of docs/measured/accuracy.md from the rows: run from the folder `tests` as
`python -m kernels.accuracy_page`."""

from pathlib import Path

from kernels.value_sweep import COMPUTING
from xpurt.text.markdown_section import Section, head_of, line_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measured" / "accuracy.md"
SECTION = Section("<!-- bounds -->", "<!-- end of bounds -->")


def lines() -> list[str]:
    """Rows with another bound than 1, and how many have that."""
    own = [row for row in COMPUTING if (row.ulp, row.scale) != (1, 0)]
    of_complex = [row for row in COMPUTING if row.complex is not None]
    wider = [row for row in of_complex if row.complex_ulp != 4]
    named = ", ".join(f"{row.aten} ({row.complex_ulp:g})" for row in wider)
    return [
        f"{len(COMPUTING) - len(own)} rows are within 1. The others:",
        "",
        *head_of(("op", ">within", ">below this number as at it")),
        *(
            line_of((row.aten, f"{row.ulp:g}", f"{row.scale:g}" if row.scale else ""))
            for row in own
        ),
        "",
        f"Of complex numbers {len(of_complex) - len(wider)} rows are within 4 by the norm. "
        f"The others: {named}.",
    ]


if __name__ == "__main__":
    PAGE.write_text(SECTION.replaced(PAGE.read_text(), lines()))
