"""The tests run under every mapping, beside a virtual GPU that forgives nothing."""

import gc
import os
import random
import sys
from pathlib import Path

import pytest

# From the environment, so that processes which tests start have the same devices; and
# before anything looks at a device. A machine with a GPU of its own sets it to "off".
os.environ.setdefault("XPURT_VIRTUAL_GPU", "strict")
# Not the user's own; all processes that run tests share it.
os.environ.setdefault(
    "XPURT_CACHE_DIR", str(Path(__file__).parent.parent / "build" / "test-kernels")
)
# A tier that is chosen by times of this run makes no test; those of learning switch it on.
os.environ.setdefault("XPURT_LEARN", "0")

pytest_plugins = ["pytest_xpurt", "pytester", "headless_browser"]

MAPPINGS = ["CPU", "explicit", "GPU", "AUTO"]


def pytest_configure(config: pytest.Config) -> None:
    if not config.option.xpu_mapping:
        config.option.xpu_mapping = list(MAPPINGS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take minutes are begun first: others fill the time beside them."""
    items.sort(key=lambda item: item.get_closest_marker("takes_minutes") is None)


def pytest_collection_finish() -> None:
    """What is there by now, modules and tests, lives to the end: who collects garbage,
    as a change of the mapping may, need not look at it each time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test draws the same numbers each time, whatever ran before it."""
    random.seed(0)
    if "torch" in sys.modules:
        # The CPU's generator alone: torch.manual_seed would reach for every device.
        sys.modules["torch"].default_generator.manual_seed(0)
