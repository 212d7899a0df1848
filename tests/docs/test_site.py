"""The site: its strict build, and what a browser shows of it."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from headless_browser import hidden_pictures, overflow
from pages import DOCS, ROOT, SITE

import xpurt

pytestmark = pytest.mark.rest

PATHS = [str(page.relative_to(DOCS).with_suffix(".html")) for page in SITE]
PHONE = {"width": 390, "height": 844}
# Material for MkDocs advertises its successor in each build.
QUIET = {"NO_MKDOCS_2_WARNING": "1"}


def build(project: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(site),
    ]
    return subprocess.run(
        command,
        cwd=project,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; what builds it may not warn."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where a server has it."""

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Silence: the browser's faults are enough."""

    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(site))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[a](no_such.md)", "no_such.md"),
        ("[a](index.md#no-such)", "no-such"),
        ("::: xpurt.no_such_function", "no_such_function"),
        ('```python\n--8<-- "examples/no_such.py"\n```', "no_such.py"),
    ],
    ids=["link", "anchor", "docstring", "included file"],
)
def test_the_build_fails_on_what_is_broken(
    tmp_path: Path, text: str, warning: str
) -> None:
    config = (ROOT / "mkdocs.yml").read_text()
    config = re.sub(r"(?ms)^nav:.*?^(?=\w)", "", config)
    config = config.replace("paths: [.]", f"paths: [{ROOT}]")
    config = config.replace("[docs/hooks/", f"[{ROOT}/docs/hooks/")
    (tmp_path / "mkdocs.yml").write_text(config)
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "index.md"
    page.write_text("# A page\n")
    assert build(tmp_path, tmp_path / "site").returncode == 0
    page.write_text(f"# A page\n\n{text}\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert warning in done.stderr


@pytest.mark.parametrize("path", PATHS)
def test_markdown_became_html(site: Path, path: str) -> None:
    """A list or a table without an empty line before it stays text on the site, but not
    where the pages are read on GitHub."""
    html = (site / path).read_text()
    article = re.search(r"(?s)<article.*</article>", html)[0]
    prose = re.sub(r"(?s)<(pre|code)\b.*?</\1>", "", article)
    text = unescape(re.sub(r"<[^>]+>", "", prose))
    assert [
        line
        for line in text.splitlines()
        if re.match(r"\s*([-*] |\d\. |\||#+ |```)", line)
    ] == []
    assert "](" not in text


def test_the_api_has_every_public_name(site: Path) -> None:
    html = (site / "api.html").read_text()
    found = set(re.findall(r'id="(xpurt[\w.]*)"', html))
    names = {f"xpurt.{name}" for name in xpurt.__all__ if not name.endswith("Error")}
    names |= {
        f"xpurt.errors.{name}" for name in xpurt.__all__ if name.endswith("Error")
    }
    assert names <= found
    # A function, and not the module of that name.
    assert [
        name for name in found if re.fullmatch(r"xpurt\.(.*\.)?(\w+)\.\2", name)
    ] == []


def test_arguments_in_docstrings_are_a_list(site: Path) -> None:
    html = (site / "api.html").read_text()
    assert re.search(r"<li>\s*(<p>)?<code>partition</code>: splits", html)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_shown(open_page, address: str, path: str) -> None:
    shown = open_page(f"{address}/{path}")
    for _ in ("desk", "phone"):
        assert shown.locator("article h1").is_visible()
        assert hidden_pictures(shown) == []
        assert overflow(shown) == 0
        shown.set_viewport_size(PHONE)


def test_programs_are_included(site: Path) -> None:
    """On the page of what they show."""
    html = "".join(page.read_text() for page in site.glob("*.html"))
    text = unescape(re.sub(r"<[^>]+>", "", html))
    for path in (ROOT / "examples").rglob("*.*"):
        if path.suffix in {".py", ".cpp"} and path.name != "layer.py":
            assert path.read_text().splitlines()[-1] in text


def test_pictures_are_there(open_page, address: str) -> None:
    """Without pictures the test above would pass."""
    for stem in ("architecture", "index", "kernels", "measured/policies"):
        assert open_page(f"{address}/{stem}.html").locator("article img").count() == 1


def test_the_navigation_leads_to_every_page(
    open_page, address: str, site: Path
) -> None:
    shown = open_page(f"{address}/mappings.html")
    links = shown.locator("nav.md-nav--primary a[href]")
    paths = {
        str(link).removeprefix(f"{address}/").partition("#")[0]
        for link in links.evaluate_all("all => all.map(each => each.href)")
    }
    assert set(PATHS) <= paths
    shown.get_by_role("link", name="Getting started").first.click()
    shown.wait_for_url("**/index.html")
    assert shown.locator("article h1").inner_text().startswith("Getting started")


@pytest.mark.parametrize("served", [True, False], ids=["from a server", "as files"])
def test_the_search_finds_a_page(
    open_page, address: str, site: Path, served: bool
) -> None:
    shown = open_page(f"{address}/index.html" if served else site / "index.html")
    asked = shown.locator("input.md-search__input")
    asked.focus()
    # The page searches when a key is released, once it has its index.
    shown.locator(".md-search-result__meta", has_text="Type to start").wait_for()
    asked.press_sequentially("earliest finish")
    shown.locator(".md-search-result__link").first.click()
    shown.wait_for_url("**/auto*")
    assert "finish" in shown.locator("article").inner_text()


def test_the_navigation_opens_on_a_phone(open_page, address: str) -> None:
    shown = open_page(f"{address}/mappings.html", **PHONE)
    drawer = shown.locator(".md-sidebar--primary")
    assert drawer.bounding_box()["x"] < 0
    shown.locator("label.md-header__button[for=__drawer]").click()
    shown.wait_for_timeout(400)
    assert drawer.bounding_box()["x"] >= 0
    entry = drawer.get_by_text("Reference").first
    assert entry.is_visible()
    assert entry.bounding_box()["x"] >= 0
