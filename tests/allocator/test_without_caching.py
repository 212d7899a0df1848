"""XPURT_NO_MEMORY_CACHING: each tensor has an allocation of its own."""

import pytest
from own_process import output, run

SIZES = """
import torch
torch.xpu.init()
x, y = torch.ones(3, device="xpu"), torch.zeros(2, 5, device="xpu")
sizes = [torch.xpu.memory_reserved()]
z = y @ y.t()
del x, y
sizes += [torch.xpu.memory_reserved(), torch.xpu.memory_allocated()]
del z
print(*sizes, torch.xpu.memory_reserved())
"""


@pytest.mark.parametrize("mapping", ["CPU", "GPU", "AUTO"])
def test_memory_is_that_of_the_tensors(mapping: str) -> None:
    settings = {"XPURT_MAPPING": mapping, "XPURT_VIRTUAL_GPU": "strict"}
    assert output(SIZES, XPURT_NO_MEMORY_CACHING="1", **settings) == "52 16 16 0"


TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten(), nn.Linear(125, 3)
)
net.to("xpu")
steps = torch.optim.AdamW(net.parameters(), 0.01)
for _ in range(3):
    steps.zero_grad()
    main, side = torch.xpu.current_stream(), torch.xpu.Stream()
    x = torch.randn(4, 3, 7, 7).to("xpu")
    with torch.xpu.stream(side):
        side.wait_stream(main)
        x = x * 2
    main.wait_stream(side)
    loss = net(x).square().mean()
    loss.backward()
    steps.step()
print(f"{loss.item():.4f}")
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("mapping", ["CPU", "GPU", "AUTO"])
def test_training_is_the_same(mapping: str) -> None:
    settings = {"XPURT_MAPPING": mapping, "XPURT_VIRTUAL_GPU": "strict"}
    found = output(TRAINING, XPURT_NO_MEMORY_CACHING="1", **settings)
    assert found == output(TRAINING, **settings)


# A row's kernel that writes one element behind its result.
OVERRUN = """
import torch, xpurt
from xpurt import _C
from xpurt.kernels import registration
from xpurt.kernels.rows.table import ROWS

def make_source(key, traits):
    entry, source = registration.make_source(key, traits)
    if ROWS[int(key.split(";")[0])].aten == "erfinv":
        source = source.replace("columns = layout.size[0]", "columns = layout.size[0] + 1")
    return entry, source

torch.xpu.init()
_C.set_source_callbacks(make_source, registration.fail)
xpurt.set_kernel_policy("sycl")
x = torch.zeros(100, device="xpu")
y = torch.erfinv(x)
torch.xpu.synchronize()
del y
print("nothing was seen")
"""


def test_a_row_that_leaves_its_tensor_is_found() -> None:
    settings = {"XPURT_MAPPING": "GPU", "XPURT_VIRTUAL_GPU": "strict"}
    assert "nothing was seen" in run(OVERRUN, **settings).stdout
    done = run(OVERRUN, XPURT_NO_MEMORY_CACHING="1", **settings)
    assert "a kernel wrote beyond the end of this allocation" in done.stderr
    assert "nothing was seen" not in done.stdout
