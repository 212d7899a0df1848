"""The backend that timm takes for ranks on xpu. (Ranks train in tests/programs.)"""

from types import ModuleType
from typing import Any

import pytest
import torch.distributed

from xpurt.integrations import timm


@pytest.fixture
def module() -> ModuleType:
    """As timm.utils.distributed: a function that is given a device and a backend."""

    def init_distributed_device_so(
        device: str = "cuda", dist_backend: Any = None, dist_url: Any = None
    ) -> tuple[Any, ...]:
        return device, dist_backend, dist_url

    made: Any = ModuleType("made")
    made.init_distributed_device_so = init_distributed_device_so
    timm.change(made)
    return made


@pytest.mark.parametrize("device", ["xpu", "xpu:1"])
def test_xpu_gets_its_backends(module: Any, device: str) -> None:
    found = module.init_distributed_device_so(device, dist_url="env://")
    assert found == (device, "cpu:gloo,xpu:xccl", "env://")


def test_others_are_left(module: Any) -> None:
    assert module.init_distributed_device_so() == ("cuda", None, None)
    assert module.init_distributed_device_so("xpu", "gloo") == ("xpu", "gloo", None)


def test_a_registered_ccl_is_left(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed.Backend, "CCL", "ccl", raising=False)
    assert module.init_distributed_device_so("xpu") == ("xpu", None, None)
