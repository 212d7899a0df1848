"""Compiled code is kept in a folder of the tests. No graph outlives its test, and each
test has the warnings of a new process."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(
    Path(__file__).parents[2] / "build" / "test-inductor"
)


@pytest.fixture(autouse=True)
def no_graph_before_or_after() -> Iterator[None]:
    import torch

    from xpurt.compiler.warn_once import warn_once

    torch._dynamo.reset()
    warn_once.cache_clear()
    yield
    torch._dynamo.reset()
    gc.collect()
