"""The device that can record commands."""

import gc
from collections.abc import Iterator

import pytest
import torch

import xpurt


@pytest.fixture
def cpu() -> Iterator[torch.device]:
    """xpu:0 under the mapping "CPU", the one device here that records commands."""
    with xpurt.xpu_mapping("CPU"):
        torch.xpu.init()
        yield torch.device("xpu", 0)
        gc.collect()
