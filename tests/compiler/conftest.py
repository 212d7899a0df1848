"""Compiled code is kept in a folder of the tests, and no graph outlives its test."""

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

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    gc.collect()
