"""The devices that tests of this folder run on."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import xpurt
from xpurt.optimization import captured_forward, fusions
from xpurt.optimization.patterns import attention, rms_norm, swiglu
from xpurt.optimization.requested_form import optimized


@pytest.fixture(params=["cpu", "xpu"])
def device(request: pytest.FixtureRequest) -> str:
    """A device type; xpu is the CPU device."""
    if request.param == "xpu":
        xpurt.set_xpu_mapping("CPU")
    return str(request.param)


@pytest.fixture(autouse=True)
def _fusing_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Dynamo runs a graph whose fusing fails as it is written."""
    errors: list[Exception] = []

    def fuse(*args: Any) -> Any:
        try:
            return fusions.fuse(*args)
        except Exception as error:
            errors.append(error)
            raise

    monkeypatch.setattr(captured_forward, "fuse", fuse)
    yield
    assert errors == []


@pytest.fixture
def in_optimized_form() -> Iterator[None]:
    """Calls run the optimized form, also where it takes longer."""
    with optimized():
        yield


@pytest.fixture
def cpu() -> torch.device:
    """xpu:0 under the mapping CPU."""
    xpurt.set_xpu_mapping("CPU")
    return torch.device("xpu", 0)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ops that fused forms took."""
    names: list[str] = []
    for place, name in (
        (attention.F, "scaled_dot_product_attention"),
        (rms_norm.F, "rms_norm"),
        (swiglu, "joined_linear"),
    ):
        op = getattr(place, name)

        def note(*args: Any, op: Any = op, name: str = name, **kwargs: Any) -> Any:
            names.append(name)
            return op(*args, **kwargs)

        monkeypatch.setattr(place, name, note)
    return names
