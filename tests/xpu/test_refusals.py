"""Facts that xpu devices lack raise with the reason; no number is invented."""

from collections.abc import Callable

import pytest
import torch

pytestmark = pytest.mark.usefixtures("xpu")


@pytest.mark.parametrize(
    ("use", "reason"),
    [
        (lambda: torch.xpu.Event().ipc_handle(), "ipc"),
    ],
)
def test_not_offered(use: Callable[[], object], reason: str) -> None:
    with pytest.raises(NotImplementedError, match=reason):
        use()


@pytest.mark.parametrize(
    "sensor",
    ["temperature", "clock_rate", "power_draw", "utilization", "memory_usage"],
)
def test_sensors(sensor: str) -> None:
    with pytest.raises(RuntimeError, match=r"is not known: neither SYCL nor OpenCL"):
        getattr(torch.xpu, sensor)()


def test_nothing_is_being_captured() -> None:
    assert torch.xpu.is_current_stream_capturing() is False
    assert torch.accelerator.current_stream().is_capturing() is False


def test_nothing_is_built_ahead_of_time() -> None:
    assert torch.xpu.get_arch_list() == []
    assert torch.xpu.get_gencode_flags() == ""
