"""No test runs under the mapping that a test of another file has left."""

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_SETTERS = ("set_xpu_mapping", "xpu_mapping")


class SaidMapping:
    """Fails a test that makes xpu tensors where neither the fixture `xpu` nor its file has
    set a mapping."""

    def __init__(self) -> None:
        self._file: Path | None = None
        self._is_said = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if item.path != self._file:
            self._file, self._is_said = item.path, False
        mapping = sys.modules.get("xpurt.mapping")
        if mapping is not None and not hasattr(mapping.set_xpu_mapping, "__wrapped__"):
            for name in _SETTERS:
                self._note_calls(getattr(mapping, name))

    def _note_calls(self, setter: Callable[..., Any]) -> None:
        @functools.wraps(setter)
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._is_said = True
            return setter(*args, **kwargs)

        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get(setter.__name__) is setter:
                setattr(module, setter.__name__, noted)

    @pytest.fixture(autouse=True)
    def _mapping_is_said(self, request: pytest.FixtureRequest) -> Iterator[None]:
        before = _allocations()
        yield
        if "xpu" in request.fixturenames or self._is_said:
            return
        if _allocations() != before:
            pytest.fail(
                "it makes xpu tensors under the mapping that another file has left: take "
                "the fixture xpu, or set a mapping"
            )


def _allocations() -> int:
    """Of all devices, in this process."""
    if "xpurt._C" not in sys.modules:
        return 0
    import torch

    if not torch.xpu.is_initialized():  # type: ignore[no-untyped-call]
        return 0
    return sum(
        torch.xpu.memory_stats(index).get("allocation.all.allocated", 0)
        for index in range(torch.xpu.device_count())
    )
