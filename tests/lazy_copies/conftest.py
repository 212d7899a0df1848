"""Lazy copies, under the mapping that has them."""

from collections.abc import Iterator

import pytest

import xpurt


@pytest.fixture
def lazily() -> Iterator[None]:
    with xpurt.xpu_mapping("CPU"), xpurt.lazy_copies():
        yield
