"""Real models and training loops, each on xpu beside the CPU: `make test-programs`.

They need the extra `programs`, which is why they are not part of `make test`.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Models are made from configurations. Without it, some packages ask their hub about a
# folder, and wait for an answer. Read when they are imported.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("programs")


@pytest.fixture(autouse=True)
def no_state_of_accelerate() -> Iterator[None]:
    """The first Accelerator of a process decides the device of all others."""
    yield
    state = sys.modules.get("accelerate.state")
    if state is not None:
        state.AcceleratorState._reset_state(reset_partial_state=True)
