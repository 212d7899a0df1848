"""A missing package is named, with the remedy."""

from pathlib import Path

import pytest

from xpurt.startup.extras import MissingExtra, needs


def test_a_missing_package_is_one_line_with_the_way_out() -> None:
    with pytest.raises(MissingExtra) as error:
        needs("no_such_package.figure", "the demo", "no-such-package")
    assert str(error.value) == (
        "the demo wants no-such-package, which is not installed: "
        'pip install "xpurt[demo]"'
    )
    assert error.value.name == "no-such-package"


def test_without_another_name_it_is_the_modules() -> None:
    with pytest.raises(MissingExtra, match="the plot wants no_such_package, which"):
        needs("no_such_package.figure", "the plot")


def test_a_broken_package_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_broken_package.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        needs("a_broken_package", "the demo")
