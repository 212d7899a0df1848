"""The fixture `open_page` finds what is wrong with a page."""

from pathlib import Path

import pytest
from headless_browser import faults, hidden_pictures, overflow

PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("<script>console.error('ouch')</script>", "console: ouch"),
        ("<script>no_such_thing()</script>", "exception: no_such_thing is not defined"),
        ("<img src='missing.png'>", "failed request: "),
        ("<img src='https://example.org/a.png'>", "request to another host: "),
        (
            "<script src='http://example.org/a.js'></script>",
            "request to another host: ",
        ),
    ],
)
def test_a_fault_is_found(open_page, tmp_path: Path, body: str, fault: str) -> None:
    page = open_page(written(tmp_path, body))
    found = faults(page)
    assert len(found) == 1
    assert found.pop().startswith(fault)


def test_a_page_without_a_fault(open_page, tmp_path: Path) -> None:
    page = open_page(written(tmp_path, f"<img src='{PIXEL}' width=9 height=9>"))
    assert faults(page) == []
    assert hidden_pictures(page) == []
    assert overflow(page) == 0


def test_a_picture_without_a_size_is_found(open_page, tmp_path: Path) -> None:
    page = open_page(written(tmp_path, f"<img src='{PIXEL}' style='height: 0'>"))
    assert hidden_pictures(page) == [PIXEL]


def test_what_is_wider_than_a_phone_is_found(open_page, tmp_path: Path) -> None:
    wide = written(tmp_path, "<div style='width: 700px'>wide</div>")
    assert overflow(open_page(wide)) == 0
    assert overflow(open_page(wide, width=390, height=844)) > 300


def written(folder: Path, body: str) -> Path:
    page = folder / "page.html"
    page.write_text(f"<!doctype html><body>{body}</body>")
    return page
