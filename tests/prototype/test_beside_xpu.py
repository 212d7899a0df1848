"""xpu in one process with a prototype device that takes its place as the accelerator."""

import pytest
from own_process import output

START = """
import torch, warnings, xpurt
warnings.simplefilter("ignore")
name = {name!r}
"""

BESIDE = """
device = xpurt.prototype_device(name)
x = torch.arange(3.0, device="xpu")  # the first use of xpu, without a mapping
assert (x + 1).tolist() == [1, 2, 3]
for _ in range(2):
    assert torch.accelerator.current_accelerator().type == name
    assert torch.accelerator.device_count() == 1
    y = torch.ones(3, device=name, requires_grad=True)
    (2 * y).sum().backward()
    assert y.grad.tolist() == [2, 2, 2]
    assert x.to(name).tolist() == [0, 1, 2]
del x
xpurt.set_xpu_mapping("CPU")
assert torch.accelerator.current_accelerator().type == name
for end in ("xpu", "cpu"):
    x = torch.arange(3.0, device="xpu", requires_grad=True)
    try:
        x.sin().sum().to(end).backward()
    except RuntimeError as error:
        print(error)
    try:
        torch.autograd.grad(x.sin().sum().to(end), x)
    except RuntimeError as error:
        print(error)
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("mapping", ["", "CPU"])
@pytest.mark.parametrize("name", ["hpu", "mtia", "mydevice"])
def test_xpu_computes_beside_it(name: str, mapping: str) -> None:
    found = output(START.format(name=name) + BESIDE, XPURT_MAPPING=mapping)
    lines = found.splitlines()
    assert len(lines) == 4, found
    for line in lines:
        assert f"found the accelerator {name}, which took that place from xpu" in line
        assert "another process" in line


def test_xpu_is_behind_it_without_a_mapping_set() -> None:
    code = """
xpurt.prototype_device(name, memory="xpu")
print(torch.ones(2, device=name).sum().item())
"""
    assert output(START.format(name="foo") + code, XPURT_MAPPING="") == "2.0"
