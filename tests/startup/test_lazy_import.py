"""Importing uses no device, so that a process forked after it may use xpu."""

from pathlib import Path

import pytest
from own_process import fresh_output
from own_process import output_to_the_end as output

# In the process: SYCL's adapters and drivers, and threads of ours.
PROCESS = """
import os, re
DRIVERS = re.compile(r"/lib(ur_adapter_\\w+|intelocl|igdrcl|ze_loader|ze_intel_gpu)")
def drivers():
    return len(set(DRIVERS.findall(open("/proc/self/maps").read())))
def threads():
    return len(os.listdir("/proc/self/task"))
def in_child(function):
    child = os.fork()
    if child == 0:
        try:
            function()
            os._exit(0)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def test_importing_loads_no_driver_and_starts_no_thread() -> None:
    code = """
import sys, torch
before = threads()
modules = set(sys.modules)
import xpurt
print(threads() - before, drivers())
new = set(sys.modules) - modules
print(sorted(m for m in new if m.partition(".")[0] not in ("xpurt", "torch")))
print("dpctl" in sys.modules)
torch.xpu.current_device()
print(drivers() > 0)
"""
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    found = fresh_output(PROCESS + code, **off).splitlines()
    assert found[0] == "0 0"
    assert found[1] == "[]"
    assert found[2:] == ["False", "True"]


def test_rows_are_imported_by_the_first_device_unless_the_cache_describes_them(
    tmp_path: Path,
) -> None:
    """They are as many modules as all that `import torch` takes of xpurt."""
    code = """
import sys, torch, xpurt
def rooms():
    parts = [m.split(".") for m in sys.modules if m.startswith("xpurt.kernels.")]
    return {part[2] for part in parts} & {"catalog", "kinds", "registration", "rows", "sources"}
print(sorted(rooms()))
torch.xpu.current_device()
print(sorted(rooms()))
xpurt.set_kernel_policy("sycl")
assert (torch.ones(3, device="xpu") + 1).tolist() == [2, 2, 2]
"""
    folder = str(tmp_path / "cache")
    cold = output(code, XPURT_CACHE_DIR=folder).splitlines()
    warm = output(code, XPURT_CACHE_DIR=folder).splitlines()
    assert cold == ["[]", "['kinds', 'registration', 'rows']"]
    assert warm == ["[]", "['registration']"]


def test_importing_leaves_rooms_until_they_are_asked_for() -> None:
    code = """
import sys, torch, xpurt
rooms = ("calibration", "optimization", "prototype", "quantization")
print([room for room in rooms if f"xpurt.{room}" in sys.modules])
print(xpurt.optimization.optimize is xpurt.optimize, xpurt.quantize.__name__)
"""
    assert output(code).splitlines() == ["[]", "True quantize"]


def test_kernels_load_no_compiler() -> None:
    """Functions of PyTorch that tell shapes are in part in Python, and load Dynamo."""
    code = """
import sys, torch
x = torch.ones(3, 3, device="xpu")
torch.cat([x, x]), torch.stack([x, x]), x @ x, x @ x[0], x[0] @ x[0], torch.vdot(x[0], x[0])
torch.baddbmm(x[None], x[None], x[None]), torch.addbmm(x, x[None], x[None])
torch.nn.functional.layer_norm(x, (3,)).softmax(0)
print("torch._dynamo" in sys.modules)
"""
    assert fresh_output(code, XPURT_KERNEL_POLICY="sycl") == "False"


def test_questions_that_need_no_device_load_no_driver() -> None:
    code = """
import torch, xpurt
before = threads()
xpurt.get_xpu_mapping()
torch.device("xpu"), torch.device("xpu", 1)
torch.accelerator.current_accelerator()
torch.manual_seed(1)
torch.xpu.manual_seed_all(2)
torch.xpu.is_initialized()
torch.xpu._is_in_bad_fork()
torch.get_device_module("xpu")
torch.ones(3, requires_grad=True).sum().backward()
torch.utils.data.DataLoader([1, 2])
xpurt.set_kernel_policy("auto")
str(xpurt.op_report())
print(threads() - before, drivers())
"""
    assert output(PROCESS + code, XPURT_MAPPING="") == "0 0"


def test_children_forked_before_the_first_use_have_devices_of_their_own() -> None:
    code = """
import torch, xpurt
torch.ones(3, requires_grad=True).sum().backward()
def use():
    x = torch.randn(8, 4, device="xpu", requires_grad=True)
    torch.nn.functional.conv1d(x[None], torch.ones(1, 8, 3, device="xpu")).sum().backward()
    stream = torch.xpu.Stream()
    with stream:
        y = x.detach() @ x.detach().T
    stream.synchronize()
    assert torch.isfinite(y).all().item() and x.grad is not None
print([in_child(use) for _ in range(3)])
use()
print(in_child(lambda: torch.ones(2).sum().item()))
"""
    assert output(PROCESS + code).splitlines() == ["[0, 0, 0]", "0"]


@pytest.mark.parametrize("parent_too", [False, True])
def test_data_loader_workers_that_use_xpu_first(parent_too: bool) -> None:
    """The parent has used nothing when they are forked; it may do so while they run."""
    code = f"""
import torch, xpurt
from torch.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return (torch.full((2,), float(i), device="xpu") ** 2).cpu()
loader = DataLoader(Squares(), batch_size=2, num_workers=2,
                    multiprocessing_context="fork")
batches = iter(loader)
total = 0.0
for batch in batches:
    total += (batch.to("xpu") if {parent_too} else batch).sum().item()
print(total, drivers() > 0)
"""
    assert output(PROCESS + code) == f"280.0 {parent_too}"


def test_a_pool_of_forked_processes() -> None:
    code = """
import multiprocessing, torch, xpurt
def total(n):
    return torch.arange(n, device="xpu").sum().item()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(total, [10, 100]))
print(total(10))
"""
    assert output(PROCESS + code) == "[45, 4950]\n45"
