"""The pages are few and short: what a page says twice, nobody keeps right."""

import pytest
from length import MOST_PAGES, MOST_WORDS, PROSE, counted, words_by_hand
from pages import DOCS, SITE

PAGE = """# A page

Two words.

| op | ms |
| --- | ---: |
| add | 1 |

<!-- bench machine: begin, written by the command -->
An AMD EPYC.
<!-- bench machine: end -->
"""


def test_the_pages_are_few() -> None:
    assert len(PROSE) <= MOST_PAGES


def test_the_pages_are_short() -> None:
    assert sum(counted().values()) <= MOST_WORDS


def test_each_page_counts() -> None:
    assert counted().keys() == {str(page.relative_to(DOCS)) for page in SITE}


@pytest.mark.parametrize(("artefact", "words"), [(True, 5), (False, 37)])
def test_what_commands_write_does_not_count(artefact: bool, words: int) -> None:
    assert words_by_hand(PAGE, artefact) == words
