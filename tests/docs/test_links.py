"""Links and files that pages name. Those within the site are checked by its build."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from markdown import Markdown
from pages import DOCS, PAGES, ROOT, SITE

OUTSIDE_OF_THE_SITE = [
    ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")
]

_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
# `csrc/...`, `kernels/...`: what is in backquotes, has a folder, and ends in a suffix.
_FILE = re.compile(
    r"`([\w./]+/[\w.]+\.(?:py|cpp|h|cl|json|txt|md|toml|yml))(?:::\w+)?`"
)
# Tables of places in PyTorch, of several versions: tests/bystander compares them with the
# installed one.
_TABLE_OF_PLACES = re.compile(r"^\| place \|.*\n(?:\|.*\n)+", re.MULTILINE)
# The folders of files that are not named from the root. Some are PyTorch's.
_TORCH = Path(find_spec("torch").origin).parent
_PLACES = (ROOT, ROOT / "xpurt", ROOT / "tests", _TORCH, _TORCH / "include")


def anchors(page: Path) -> set[str]:
    """Of the headings, as the site and GitHub make them."""
    markdown = Markdown(extensions=["toc", "fenced_code"])
    markdown.convert(page.read_text())
    found: set[str] = set()
    pending = list(markdown.toc_tokens)
    while pending:
        token = pending.pop()
        found.add(token["id"])
        pending += token["children"]
    return found


def broken_links(page: Path, text: str) -> list[str]:
    broken = []
    for match in _LINK.finditer(re.sub(r"(?s)```.*?```|`[^`\n]*`", "", text)):
        target, _, anchor = match["target"].partition("#")
        if "://" in target:
            continue
        file = (page.parent / target) if target else page
        missing = not file.exists() or (anchor and anchor not in anchors(file))
        if missing:
            broken.append(match["target"])
    return broken


def missing_files(text: str) -> list[str]:
    named = {match[1] for match in _FILE.finditer(_TABLE_OF_PLACES.sub("", text))}
    return sorted(
        name for name in named if not any((place / name).is_file() for place in _PLACES)
    )


@pytest.mark.parametrize("page", OUTSIDE_OF_THE_SITE, ids=lambda page: page.stem)
def test_no_link_is_broken(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_file_that_is_named_is_there(page: Path) -> None:
    assert missing_files(page.read_text()) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](docs/index.md) [b](docs/mappings.md#auto)", []),
        ("[a](docs/no_such.md)", ["docs/no_such.md"]),
        ("[a](docs/mappings.md#no-such)", ["docs/mappings.md#no-such"]),
        ("![a](docs/pictures/no_such.png)", ["docs/pictures/no_such.png"]),
        ("`[a](no_such.md)`, and <https://example.org>", []),
    ],
)
def test_a_broken_link_is_found(text: str, found: list[str]) -> None:
    assert broken_links(ROOT / "README.md", text) == found


def test_a_missing_file_is_found() -> None:
    text = "`xpurt/__init__.py`, `mapping/spec.py`, `csrc/no_such.cpp`, `no_folder.py`"
    assert missing_files(text) == ["csrc/no_such.cpp"]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 200


def test_every_page_is_in_the_navigation() -> None:
    """The site's build would leave it out with a warning at most."""
    config = (ROOT / "mkdocs.yml").read_text()
    listed = set(re.findall(r": ([\w/]+\.md)$", config, re.MULTILINE))
    assert listed == {str(page.relative_to(DOCS)) for page in SITE}
