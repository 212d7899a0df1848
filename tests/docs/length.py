"""Counts the pages and words that were written by hand: python tests/docs/length.py.

Words of tables and of sections that commands write don't count in pages of measurements
and in generated pages; in all other pages every word counts.
"""

import re

from pages import DOCS, SITE

MOST_PAGES = 20
MOST_WORDS = 35_000
GENERATED = {DOCS / "ops.md", DOCS / "pytorch_internals.md"}

_WRITTEN = re.compile(
    r"<!-- (?P<name>.+?): begin.*?<!-- (?P=name): end -->"
    r"|<!-- bounds -->.*?<!-- end of bounds -->"
    r"|^\|.*?$",
    re.DOTALL | re.MULTILINE,
)

ARTEFACTS = [page for page in SITE if page in GENERATED or page.parent != DOCS]
PROSE = [page for page in SITE if page not in ARTEFACTS]


def words(text: str) -> int:
    return len(text.split())


def words_by_hand(text: str, artefact: bool) -> int:
    return words(_WRITTEN.sub("", text) if artefact else text)


def counted() -> dict[str, int]:
    """The words that were written by hand, by page."""
    return {
        str(page.relative_to(DOCS)): words_by_hand(page.read_text(), page in ARTEFACTS)
        for page in SITE
    }


if __name__ == "__main__":
    by_page = counted()
    for name, count in sorted(by_page.items(), key=lambda each: -each[1]):
        print(f"{count:7,}  {name}")
    total = sum(by_page.values())
    all_words = sum(words(page.read_text()) for page in SITE)
    print(f"{len(PROSE)} pages by hand, at most {MOST_PAGES}")
    print(f"{total:,} words by hand, at most {MOST_WORDS:,}")
    print(f"{len(ARTEFACTS)} pages of commands, {all_words - total:,} words of them")
