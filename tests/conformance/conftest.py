"""Settings for runs of databases that the tests make up."""

import os
from pathlib import Path

import pytest

from xpurt_tools.conformance import Settings

FOLDER = str(Path(__file__).parent)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The made-up ops, in one worker that finds them."""
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [FOLDER, path])))
    return Settings(database="fake_database:entries", timeout_s=120)
