"""The devices that models are quantized on: the CPU, and xpu under three mappings."""

import gc
from collections.abc import Iterator

import pytest
import torch

import xpurt

MAPPINGS = ["CPU", "GPU", "AUTO"]


def _on_xpu(mapping: str) -> Iterator[None]:
    gc.collect()
    with xpurt.xpu_mapping(mapping):
        yield
        gc.collect()


# Of a module: pytest then runs all tests of a mapping before those of the next one.
@pytest.fixture(params=["cpu", *MAPPINGS], scope="module")
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """ "cpu", or "xpu" under the mapping of the parameter."""
    if request.param == "cpu":
        yield "cpu"
        return
    for _ in _on_xpu(request.param):
        yield "xpu"


@pytest.fixture(params=MAPPINGS, scope="module")
def on_xpu(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """The device xpu:0 under the mapping of the parameter."""
    for _ in _on_xpu(request.param):
        yield torch.device("xpu", 0)
