"""Pages in a real browser without a window: the fixture `open_page`.

    def test_my_page(open_page, tmp_path):
        page = open_page(tmp_path / "report.html")  # or a URL; width=390 is a phone
        page.get_by_role("button", name="slower").click()
        assert overflow(page) == 0

It gives a `playwright.sync_api.Page`. The test fails at its end when a page had a fault:
an error on the console, an uncaught exception, a request that failed, a request to another
host. `faults(page)` is the list of them; a test that expects one removes it from there.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The hosts that a page may use: itself, files beside it, and a server of the test's.
OWN_HOSTS = ("", "localhost", "127.0.0.1")

_faults: dict["Page", list[str]] = {}


def faults(page: "Page") -> list[str]:
    """The errors in the page so far, a line each."""
    return _faults[page]


def overflow(page: "Page") -> int:
    """The number of pixels by which the page is wider than the window."""
    wider = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    return int(wider)


def hidden_pictures(page: "Page") -> list[str]:
    """Sources of the pictures that were not loaded, or that have no size on the page."""
    # Pictures may be loaded only when they are scrolled to.
    page.evaluate("for (const each of document.images) each.loading = 'eager'")
    page.wait_for_function("[...document.images].every(each => each.complete)")
    found: list[str] = page.evaluate(
        """[...document.images].filter(each => {
            const box = each.getBoundingClientRect();
            return !each.naturalWidth || box.width < 2 || box.height < 2;
        }).map(each => each.src)"""
    )
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """The machine's Chromium or Chrome, else the one that playwright has installed.

    For one module of tests: while it is open, asyncio has a running loop in this thread.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with playwright.sync_playwright() as started:
        if path is None and not Path(started.chromium.executable_path).exists():
            pytest.skip(
                "there is no Chromium: install it (Debian, Ubuntu: apt install chromium), "
                "or run `python -m playwright install chromium`"
            )
        # The sandbox of Chromium refuses to run as root, as containers do.
        opened = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[Callable[..., "Page"]]:
    """Opens a file or a URL, and returns when it is loaded and asks for nothing more."""
    pages = []

    def opened(
        address: Path | str, *, width: int = 1280, height: int = 900, **options: Any
    ) -> "Page":
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        pages.append(page)
        _note_faults(page)
        url = address.resolve().as_uri() if isinstance(address, Path) else address
        page.goto(url, wait_until="networkidle")
        return page

    yield opened
    found = [line for page in pages for line in _faults.pop(page)]
    for page in pages:
        page.close()
    assert found == []


def _note_faults(page: "Page") -> None:
    found = _faults[page] = []

    def to_another_host(route: "Route") -> None:
        found.append(f"request to another host: {route.request.url}")
        route.abort()

    def failed(request: Any) -> None:
        # A request that the page itself ended, or that was refused above.
        if not _is_foreign(request.url) and request.failure != "net::ERR_ABORTED":
            found.append(f"failed request: {request.url}: {request.failure}")

    def answered(response: Any) -> None:
        if response.status >= 400:
            found.append(f"failed request: {response.url}: {response.status}")

    def said(message: Any) -> None:
        # Failed requests are on the console, too.
        if message.type == "error" and "Failed to load resource" not in message.text:
            found.append(f"console: {message.text}")

    page.on("console", said)
    page.on("pageerror", lambda error: found.append(f"exception: {error}"))
    page.on("requestfailed", failed)
    page.on("response", answered)
    page.route(
        re.compile("^(https?|wss?)://"),
        lambda route: (
            to_another_host(route)
            if _is_foreign(route.request.url)
            else route.continue_()
        ),
    )


def _is_foreign(url: str) -> bool:
    return (urlsplit(url).hostname or "") not in OWN_HOSTS
