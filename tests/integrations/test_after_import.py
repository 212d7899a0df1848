"""Modules of other packages are changed when they are imported, and never broken."""

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from xpurt.integrations import after_import, follow_imports

CHANGE = "def change(module):\n    module.seen.append(module.made)\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the module `followed_one`, which `its_change` changes."""
    (tmp_path / "followed_one.py").write_text("seen = []\nmade = 'all of it'\n")
    (tmp_path / "its_change.py").write_text(CHANGE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(after_import, "_CHANGES", {"followed_one": "its_change"})
    yield tmp_path
    for name in ("followed_one", "its_change"):
        sys.modules.pop(name, None)


def imported() -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module("followed_one")


def test_it_is_changed_once_it_is_whole(package: Path) -> None:
    module = imported()
    assert module.seen == ["all of it"]
    assert isinstance(module.__loader__, SourceFileLoader)
    assert importlib.import_module("followed_one").seen == ["all of it"]


def test_after_a_reload_it_is_changed_again(package: Path) -> None:
    assert importlib.reload(imported()).seen == ["all of it"]


def test_what_was_imported_before_is_changed_at_once(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [each for each in sys.meta_path if each is not after_import._finder]
    monkeypatch.setattr(sys, "meta_path", others)
    module = imported()
    assert module.seen == []
    follow_imports()
    follow_imports()
    assert module.seen == ["all of it"]
    assert sys.meta_path.count(after_import._finder) == 1


@pytest.mark.parametrize(
    "change", ["import no_such_package", "", "def change(module): raise KeyError(1)"]
)
def test_a_failure_is_a_warning_that_names_the_package(
    package: Path, change: str
) -> None:
    (package / "its_change.py").write_text(change)
    with pytest.warns(RuntimeWarning, match="could not tell followed_one of xpu"):
        module = imported()
    assert module.made == "all of it"


@pytest.mark.filterwarnings("error")
def test_nor_does_it_fail_where_warnings_are_errors(package: Path) -> None:
    (package / "its_change.py").write_text("")
    assert imported().made == "all of it"


def test_what_fails_to_import_fails_as_without_it(package: Path) -> None:
    (package / "followed_one.py").write_text("import no_such_dependency")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        imported()
    assert "its_change" not in sys.modules


def test_one_that_is_not_there_is_not_found(package: Path) -> None:
    (package / "followed_one.py").unlink()
    with pytest.raises(ModuleNotFoundError, match="followed_one"):
        imported()
