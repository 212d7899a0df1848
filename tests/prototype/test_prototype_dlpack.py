"""DLPack of tensors on prototypes: the same bytes, as long as they are used."""

import pytest
from prototype_programs import few_kinds, run

EXCHANGE = """
import gc
import numpy
from torch.utils.dlpack import DLDeviceType
CPU = DLDeviceType.kDLCPU, 0
x = torch.arange(6.0, device=name).view(2, 3)
on_cpu = {"dl_device": CPU, "max_version": (1, 0)}
device = x.__dlpack_device__() if (name, memory) != ("ipu", "gpu") else None

# To the CPU, by a request.
shared = torch.from_dlpack(x.__dlpack__(**on_cpu))
assert shared.device.type == "cpu" and shared.tolist() == [[0, 1, 2], [3, 4, 5]]
x[0, 1] = 7
is_copy = memory in ("xpu", "gpu")
assert shared[0, 1] == (1 if is_copy else 7)
shared[1, 2] = 9
assert x[1, 2] == (5 if is_copy else 9)
x[1, 2] = 5
copied = torch.from_dlpack(x.__dlpack__(copy=True, **on_cpu))
copied.zero_()
assert x[0, 1] == 7
if is_copy:
    try:
        x.__dlpack__(copy=False, **on_cpu)
        raise AssertionError("no error")
    except (BufferError, RuntimeError, ValueError):
        pass

# A transposed part, to numpy.
class Wants:
    def __init__(self, tensor):
        self.tensor = tensor
    def __dlpack_device__(self):
        return CPU
    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**{**options, "dl_device": CPU})
array = numpy.from_dlpack(Wants(x.t()[1:]))
assert array.tolist() == [[7, 4], [2, 5]]

# The tensor goes first, then the capsule's consumer.
held = made.runtime.memory_allocated()
y = torch.arange(1000.0, device=name)
capsule = y.__dlpack__(**on_cpu)
del y
assert torch.from_dlpack(capsule)[999] == 999
del capsule
y = torch.arange(1000.0, device=name)
capsule = y.__dlpack__(**on_cpu)
del capsule  # not consumed
assert y[999] == 999
del y
gc.collect()
assert made.runtime.memory_allocated() == held

# Between tensors of the device; and a consumer that asks for nothing.
again = torch.from_dlpack(x)
assert again.device == x.device and again.data_ptr() == x.data_ptr()
assert torch.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
if device is not None:
    there = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    kinds = {DLDeviceType.kDLCPU: "cpu", DLDeviceType.kDLOneAPI: "xpu"}
    assert there.device.type == kinds.get(device[0], name), (device, there.device)
    there.mul_(2)
    assert x[0, 1] == 14, "not the same bytes"
    assert there.data_ptr() == x.data_ptr()

# From an array.
array = numpy.arange(4.0)
arrived = torch.from_dlpack(array, device=name)
assert arrived.device.type == name and arrived.tolist() == [0, 1, 2, 3]
array[0] = 5
assert arrived[0] == (5 if memory == "host" else 0)
try:
    torch.from_dlpack(array, device=name, copy=False)
    assert memory == "host"
except ValueError as error:
    assert memory != "host", error

for wrong in (lambda: torch.ones(2, device=name, requires_grad=True).__dlpack__(),
              lambda: x.__dlpack__(dl_device=(DLDeviceType.kDLMetal, 0))):
    try:
        wrong()
        raise AssertionError("no error")
    except (BufferError, RuntimeError):
        pass
t = torch.arange(3)
assert torch.from_dlpack(t).data_ptr() == t.data_ptr() and t.__dlpack_device__() == CPU
print("exchanged", device and int(device[0]))
"""
CODES = {("mydevice", "host"): 12, ("maia", "host"): 17, ("ipu", "xpu"): 14}


@few_kinds
def test_dlpack(name: str, memory: str) -> None:
    assert "exchanged" in run(EXCHANGE, name, memory)


@pytest.mark.parametrize(("name", "memory"), CODES)
def test_dlpack_device(name: str, memory: str) -> None:
    code = CODES[name, memory]
    assert f"exchanged {code}" in run(EXCHANGE, name, memory)
