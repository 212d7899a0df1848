"""AUTO over two devices: the CPU device and a virtual GPU that forgives nothing."""

import gc
import time
from collections.abc import Iterator

import pytest
import torch

import xpurt
from auto.choices import Choices
from xpurt import _C


@pytest.fixture(scope="module")
def auto_mapping() -> Iterator[None]:
    gc.collect()
    if not any(device.kind == "gpu" for device in xpurt.physical_devices()):
        pytest.skip("AUTO needs two devices: the virtual GPU is switched off")
    with xpurt.xpu_mapping("AUTO"):
        # Tests state the costs; times of this run would correct them.
        _C.set_learning(False)
        yield
        _C.set_learning(True)
        # Threads of autograd release their objects a moment after the last use.
        for _ in range(20):
            gc.collect()
            if _C.live_memory()[0] == 0:
                break
            time.sleep(0.05)


@pytest.fixture
def choices(auto_mapping: None, request: pytest.FixtureRequest) -> Iterator[Choices]:
    """AUTO, with the choice of the device in the test's hands; on the CPU at first."""
    made = Choices()
    with xpurt.kernel_policy("sycl"):
        made.cpu()
        yield made
    torch.xpu.synchronize()
    made.restore()
    # pytest keeps the values of finished fixtures until the test is reported, which is
    # after the mapping of its module has ended.
    request.node.funcargs.clear()


@pytest.fixture
def own_stream(auto_mapping: None) -> Iterator[None]:
    """A stream whose queue was handed out keeps total order from then on, so it is not
    one that other tests use."""
    with torch.xpu.stream(torch.xpu.Stream(priority=-1)):
        yield
