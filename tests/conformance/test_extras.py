"""A missing package is named, with the remedy; the progress bar is optional."""

import sys

import pytest

from xpurt.startup.extras import MissingExtra
from xpurt_tools.conformance.extras import needs, progress_bar


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith("torch.testing._internal.common_utils"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "expecttest", None)
    with pytest.raises(MissingExtra, match=r'wants expecttest.*"xpurt\[test\]"'):
        needs("torch.testing._internal.common_utils")


def test_a_module_of_pytorch_that_is_gone_is_no_missing_package() -> None:
    with pytest.raises(ModuleNotFoundError):
        needs("torch.testing._internal.no_such_module")


def test_without_tqdm_there_is_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert list(progress_bar(3, "CPU")([1, 2, 3])) == [1, 2, 3]
    assert "3/3" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(progress_bar(3, "CPU")([1, 2, 3])) == [1, 2, 3]
    assert capsys.readouterr().err == ""
