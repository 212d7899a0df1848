"""The pages for readers, and the blocks of code in them."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SITE = sorted(DOCS.rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *SITE]

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?: \{ \.)?(?P<language>\w*)[^`\n]*\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_FRAGMENT = re.compile(r"<!--\s*fragment:\s*(?P<reason>.+?)\s*-->")
_INCLUDED = re.compile(r'--8<-- "(?P<path>[^"]+)"\n')


@dataclass(frozen=True)
class Block:
    """A fenced block. `line`: of its first line. `reason`: why it is no whole program."""

    page: Path
    line: int
    language: str
    text: str
    reason: str | None

    @property
    def included(self) -> Path | None:
        """The file that the site shows instead of the block."""
        found = _INCLUDED.fullmatch(self.text)
        return ROOT / found["path"] if found else None

    def __str__(self) -> str:
        return f"{self.page.stem}-{self.line}"


def blocks_of(page: Path, text: str | None = None) -> list[Block]:
    text = page.read_text() if text is None else text
    found = []
    for match in _BLOCK.finditer(text):
        before = text[: match.start("indent")].rstrip().rpartition("\n")[2]
        fragment = _FRAGMENT.search(before)
        found.append(
            Block(
                page,
                text.count("\n", 0, match.start("text")) + 1,
                match["language"],
                textwrap.dedent(match["text"]),
                fragment["reason"] if fragment else None,
            )
        )
    return found


def blocks(*languages: str) -> list[Block]:
    """Those of all pages in one of these languages."""
    every = [block for page in PAGES for block in blocks_of(page)]
    return [block for block in every if block.language in languages]
