"""xpurt is imported after PyTorch has made up its mind: each in its own process."""

from own_process import output

LATE = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}

TRAIN = """
x = torch.ones(3, device="xpu", requires_grad=True)
(2 * x).sum().backward()
print(x.grad.tolist(), torch.accelerator.current_accelerator())
"""


def test_after_the_accelerator_was_asked() -> None:
    code = """
import torch
assert not torch.accelerator.is_available()
assert torch.accelerator.current_accelerator(check_available=True) is None
import xpurt
"""
    assert output(code + TRAIN, **LATE) == "[2.0, 2.0, 2.0] xpu"


def test_after_a_backward() -> None:
    code = """
import torch
y = torch.ones(3, requires_grad=True)
(2 * y).sum().backward()
import xpurt
"""
    assert output(code + TRAIN, **LATE) == "[2.0, 2.0, 2.0] xpu"


def test_after_both_with_a_mapping_that_grows() -> None:
    code = """
import torch
y = torch.ones(3, requires_grad=True)
(2 * y).sum().backward()
torch.accelerator.is_available()
import xpurt
xpurt.set_xpu_mapping("CPU")
torch.xpu.synchronize()
cpu = next(d for d in xpurt.physical_devices() if d.kind == "cpu")
if cpu.compute_units % 2 == 0:
    xpurt.set_xpu_mapping("explicit", devices="cpu", partition=2)
    z = torch.ones(3, device="xpu:1", requires_grad=True)
    (2 * z).sum().backward()
    assert z.grad.device.index == 1
"""
    assert output(code + TRAIN, **LATE) == "[2.0, 2.0, 2.0] xpu"


def test_backward_in_every_order() -> None:
    code = """
import threading, torch, xpurt
def cpu():
    y = torch.ones(3, requires_grad=True)
    (2 * y).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0, 2.0]
cpu()
TRAIN
cpu()
threads = [threading.Thread(target=train) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(done))
"""
    train = """
done = []
def train():
    x = torch.ones(3, device="xpu", requires_grad=True)
    (2 * x).sum().backward()
    done.append(x.grad.tolist())
train()
"""
    assert output(code.replace("TRAIN", train)) == "5"


def test_a_backward_on_the_cpu_starts_no_threads_and_loads_no_driver() -> None:
    code = """
    import os, torch, xpurt
    before = len(os.listdir("/proc/self/task"))
    y = torch.ones(3, requires_grad=True)
    (2 * y).sum().backward()
    print(len(os.listdir("/proc/self/task")) - before)
    print("libintelocl" in open("/proc/self/maps").read())
    """
    assert output(code).split() == ["0", "False"]


def test_a_backward_that_is_reentrant() -> None:
    code = """
import torch, xpurt
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            y = torch.ones(2, device=grad.device, requires_grad=True)
            (y * y).sum().backward()
        return grad * y.grad
for device in ("cpu", "xpu"):
    x = torch.ones(2, device=device, requires_grad=True)
    Inner.apply(x).sum().backward()
    print(x.grad.tolist())
"""
    assert output(code) == "[2.0, 2.0]\n[2.0, 2.0]"
