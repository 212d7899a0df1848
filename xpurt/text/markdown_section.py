"""Markdown pages in which a command writes the text between two markers."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple


class BadMarkers(Exception):
    """The page has no section between the markers, or several."""


class Section(NamedTuple):
    """The text between two lines of a page. The methods raise BadMarkers."""

    begin: str
    end: str

    def of(self, page: str) -> str:
        return self._match(page)[1]

    def replaced(self, page: str, lines: Sequence[str]) -> str:
        """The page with `lines` in place of the section's."""
        match = self._match(page)
        body = "".join(f"{line}\n" for line in lines)
        return page[: match.start(1)] + body + page[match.end(1) :]

    def write(self, lines: Iterable[str], page: Path | None) -> None:
        """Writes the lines into the page; prints them if there is none. The page is
        checked before the first line is made, which may take long. Raises OSError, too.
        """
        if page is None:
            print("\n".join(lines))
            return
        self.of(page.read_text())
        made = list(lines)
        page.write_text(self.replaced(page.read_text(), made))

    def _match(self, page: str) -> re.Match[str]:
        pattern = f"{re.escape(self.begin)}\n(.*?){re.escape(self.end)}"
        found = list(re.finditer(pattern, page, flags=re.DOTALL))
        if len(found) != 1:
            raise BadMarkers(
                f"it has {len(found)} sections, not one, between the lines\n"
                f"{self.begin}\n{self.end}"
            )
        return found[0]


def head_of(names: Sequence[str]) -> list[str]:
    """The headings and the rule below; ">" before a name aligns its column right."""
    rule = ["---:" if name.startswith(">") else "---" for name in names]
    return [line_of([name.removeprefix(">") for name in names]), line_of(rule)]


def line_of(row: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
