"""Forked processes: safe before the first use of xpu, refused after it."""

from own_process import output_to_the_end as output

FORK = """
import os, sys, torch, xpurt

def in_child(function):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            function()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}")
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, status
"""

REFUSED = "Cannot re-initialize XPU in forked subprocess"


def test_before_the_first_use() -> None:
    code = """
def use():
    torch.xpu.synchronize()
    print("child", torch.xpu.is_available(), torch.ones(2, device="xpu").tolist())
in_child(use)
use()
"""
    lines = output(FORK + code).splitlines()
    assert lines == ["child True [1.0, 1.0]"] * 2


def test_after_asking_for_devices() -> None:
    # Without the virtual GPU: it is made of the CPU driver's parts, whose threads run.
    code = """
print(torch.xpu.is_available(), torch.xpu.device_count(), torch.accelerator.is_available())
def use():
    tensor = torch.ones(1_000_000, device="xpu")
    while not torch.xpu.current_stream().query():
        pass
    print("child", torch.xpu._is_in_bad_fork(), (tensor + tensor).sum().item())
in_child(use)
use()
"""
    lines = output(FORK + code, XPURT_VIRTUAL_GPU="off").splitlines()
    assert lines == ["True 1 True", *["child False 2000000.0"] * 2]


def test_after_asking_drivers_whose_threads_run() -> None:
    code = """
print(torch.xpu.device_count())
in_child(torch.xpu.synchronize)
"""
    lines = output(FORK + code, XPURT_VIRTUAL_GPU="strict").splitlines()
    assert lines[0] == "1"
    assert REFUSED in lines[1]


def test_after_the_first_use() -> None:
    code = """
torch.xpu.synchronize()
def use():
    print(torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu._is_in_bad_fork())
    for use in (
        torch.xpu.synchronize,
        torch.xpu.current_stream,
        lambda: torch.xpu.set_device(0),
        lambda: torch.ones(2, device="xpu"),
        lambda: torch.Stream("xpu"),
    ):
        try:
            print(use())
        except RuntimeError as error:
            print(error)
in_child(use)
"""
    first, *others = output(FORK + code).splitlines()
    assert first == "False 0 True"
    assert len(others) == 5
    for line in others:
        assert line.startswith(REFUSED), line


def test_inherited_tensors_are_let_go() -> None:
    code = """
stream = torch.xpu.Stream()
tensor = torch.ones(1000, device="xpu")
event = stream.record_event()
def use():
    global tensor, stream, event
    del tensor, stream, event
    print("let go")
in_child(use)
print(tensor.sum().item())
"""
    assert output(FORK + code) == "let go\n1000.0"


def test_cpu_work_goes_on_after_a_fork() -> None:
    code = """
def backward():
    x = torch.ones(3, requires_grad=True)
    (2 * x).sum().backward()
    print(x.grad.tolist())
backward()
in_child(backward)           # nothing of xpu was used
torch.xpu.synchronize()
in_child(backward)           # it was, but no backward ran on it
def seed():
    torch.manual_seed(3)
    print(torch.initial_seed())
in_child(seed)
"""
    assert output(FORK + code).splitlines() == [*["[2.0, 2.0, 2.0]"] * 3, "3"]


def test_data_loaders_forked_after_the_first_use() -> None:
    code = """
from torch.utils.data import DataLoader
model = torch.nn.Linear(4, 1).to("xpu")
class Data(torch.utils.data.Dataset):
    def __len__(self): return 12
    def __getitem__(self, i):
        torch.rand(3)
        return torch.full((4,), float(i))
if __name__ == "__main__":
    loader = DataLoader(Data(), batch_size=4, num_workers=2,
                        multiprocessing_context="fork")
    total = 0.0
    for batch in loader:
        model(batch.to("xpu")).sum().backward()
        total += batch.sum().item()
    print(total, model.weight.grad is not None)
"""
    assert output(FORK + code) == "264.0 True"


def test_a_spawned_process_may_use_xpu() -> None:
    code = """
import subprocess
torch.xpu.synchronize()
subprocess.run([sys.executable, "-c", "import torch, xpurt; torch.xpu.synchronize(); print(1)"],
               check=True)
"""
    assert output(FORK + code) == "1"
