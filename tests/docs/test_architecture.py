"""The tables of rooms and folders on the page of the architecture are those of the tests."""

import re

import pytest
from pages import DOCS
from test_csrc_layers import FOLDERS, may_include
from test_layers import MAY_IMPORT

PAGE = (DOCS / "architecture.md").read_text()
NOT_ROOMS = {"autoload"}  # modules outside of the package, below the table

XPURT = "## Rooms of the Python package"
TOOLS = "## Rooms of the tools"
CSRC = "## Folders of the C++ code"


def rows_below(heading: str, page: str = PAGE) -> list[list[str]]:
    """The names in the first column of the first table below a heading, row by row."""
    section = page.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    _, _, *rows = re.findall(r"^\| (.+?) \|", section, re.MULTILINE)
    return [
        ["face"] if row == "`xpurt` itself" else re.findall(r"\w+", row) for row in rows
    ]


def disordered(rows: list[list[str]], below: dict[str, set[str]]) -> list[str]:
    """The rooms that use one of a row above theirs. Those of a row are independent."""
    place = {name: number for number, names in enumerate(rows) for name in names}
    return [
        f"{name} uses {other}"
        for name in place
        for other in sorted(below[name] & place.keys() - {name})
        if place[other] <= place[name]
    ]


ROOMS = {
    XPURT: {name: used for name, used in MAY_IMPORT.items() if "xpurt" not in name},
    TOOLS: {
        name.removeprefix("xpurt_tools."): {
            each.removeprefix("xpurt_tools.") for each in used if "xpurt_tools" in each
        }
        for name, used in MAY_IMPORT.items()
        if name.startswith("xpurt_tools.")
    },
    CSRC: {folder: may_include(folder) for folder in FOLDERS},
}


@pytest.mark.parametrize("heading", ROOMS)
def test_the_page_has_every_room(heading: str) -> None:
    named = sorted(name for row in rows_below(heading) for name in row)
    assert named == sorted(ROOMS[heading].keys() - NOT_ROOMS)


@pytest.mark.parametrize("heading", [XPURT, TOOLS])
def test_rooms_are_in_order(heading: str) -> None:
    assert disordered(rows_below(heading), ROOMS[heading]) == []


def test_folders_are_in_order() -> None:
    assert disordered(rows_below(CSRC)[::-1], ROOMS[CSRC]) == []


def test_faults_are_seen() -> None:
    page = "\n## Rooms\n\n| room | it |\n| --- | --- |\n| `a` | x |\n| `b`, `c` | x |\n"
    rows = rows_below("## Rooms", page)
    assert rows == [["a"], ["b", "c"]]
    assert disordered(rows, {"a": {"c"}, "b": set(), "c": set()}) == []
    assert disordered(rows, {"a": set(), "b": {"a"}, "c": {"b"}}) == [
        "b uses a",
        "c uses b",
    ]
