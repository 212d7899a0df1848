"""The choices between two forms that compilations make."""

from types import ModuleType
from typing import Any

import pytest


def made_choices(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> list[Any]:
    """The objects of a class that are made from now on, by this name in the module."""
    made: list[Any] = []
    base: Any = getattr(module, name)

    class Kept(base):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(module, name, Kept)
    return made
