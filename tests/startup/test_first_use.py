"""`import torch` loads a small part of xpurt. The first use of xpu loads the rest, however
the program comes to it; the program gets what it would get if all had been loaded."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from own_process import output, run

from xpurt.integrations import after_import
from xpurt.startup import first_use

# One use for each way to notice one; those marked slow are further uses of these ways.
USES = {
    "a function of torch.xpu": "assert torch.xpu.device_count() == 1",
    "a function imported from a part": """
from torch.xpu.random import manual_seed
manual_seed(3)
""",
    "an attribute that is set": "torch.xpu.mine = 3; assert torch.xpu.mine == 3",
    "the module of the device": "torch.get_device_module('xpu').synchronize()",
    "a factory": "assert torch.zeros(2, device='xpu').is_xpu",
    "a number as the device": "assert torch.ones(2, device=0).is_xpu",
    "the default device": """
with torch.device("xpu"):
    assert torch.ones(2).is_xpu
""",
    "an op of TorchScript": """
unit = torch.jit.CompilationUnit('''
def made():
    return torch.ones([2], device="xpu")
''')
assert unit.made().is_xpu
""",
    "a stream": "torch.Stream(device='xpu').synchronize()",
    "an event": "e = torch.Event('xpu'); e.record(); e.synchronize()",
    "a generator": "assert torch.Generator('xpu').manual_seed(3).device.type == 'xpu'",
    "the accelerator": """
assert torch.accelerator.memory_allocated() == 0
assert torch.accelerator.current_accelerator(check_available=True).type == "xpu"
assert torch.accelerator.current_device_index() == 0
""",
    "pinned memory": """
assert not torch.ones(2).is_pinned()
assert torch.ones(2).pin_memory().is_pinned()
""",
    "new pinned memory": "assert torch.empty(2, pin_memory=True).is_pinned()",
    "a loader that pins": """
loader = torch.utils.data.DataLoader([torch.ones(2)] * 2, pin_memory=True)
assert all(batch.is_pinned() for batch in loader)
""",
    "a storage": "assert torch.UntypedStorage(8, device='xpu').device.type == 'xpu'",
    "a loaded file": """
import io
file = io.BytesIO()
torch.save(torch.ones(2), file)
file.seek(0)
assert torch.load(file, map_location="xpu").is_xpu
""",
    "a sparse tensor": """
assert torch.sparse_coo_tensor([[0]], [1.0], (2,), device="xpu").is_xpu
""",
    "a profile": """
with torch.profiler.profile() as profile:
    torch.ones(8, device="xpu").sum().item()
assert profile.use_device == "xpu"
""",
    "an op of xpurt": "assert torch.ops.xpurt.swiglu.default",
    "a backend": """
assert torch.distributed.is_xccl_available()
from torch.distributed.distributed_c10d import BackendConfig
assert "xpu" in BackendConfig("undefined").get_device_backend_map()
""",
    "a kernel of the program": """
library = torch.library.Library("aten", "IMPL")
library.impl("abs", lambda x: x + 5, dispatch_key="XPU")
assert torch.abs(torch.ones(2, device="xpu")).tolist() == [6, 6]
""",
    "the compiler": """
import torch._dynamo.device_interface as interface
assert interface.XpuInterface.is_available()
assert interface.XpuInterface.Event is torch.xpu.Event
""",
    "a fake tensor": """
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    assert (torch.empty(2, device="xpu") + 1).device.type == "xpu"
""",
    "within a backward": """
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            y = torch.ones(2, device="xpu", requires_grad=True)
            (y * y).sum().backward()
        return grad * y.grad.cpu()
x = torch.ones(2, requires_grad=True)
Inner.apply(x).sum().backward()
assert x.grad.tolist() == [2, 2]
""",
    "within modes": """
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, function, kinds, arguments=(), options=None):
        raise AssertionError(function)
class Called(TorchFunctionMode):
    def __torch_function__(self, function, kinds, arguments=(), options=None):
        raise AssertionError(function)
with Dispatched(), Called():
    assert torch.xpu.is_available()
""",
    "in several threads": """
import threading
sums = []
def use():
    sums.append(torch.ones(4, device="xpu").sum().item())
threads = [threading.Thread(target=use) for _ in range(6)]
for each in threads: each.start()
for each in threads: each.join()
assert sums == [4.0] * 6
""",
}
# The first of its kind is in the default run.
SLOW = {
    "an attribute that is set",
    "the module of the device",
    "a number as the device",
    "the default device",
    "an event",
    "new pinned memory",
    "a loader that pins",
    "a loaded file",
    "a sparse tensor",
    "a fake tensor",
    "a backend",
}

START = """
import sys, torch
assert "xpurt._C" not in sys.modules
torch.manual_seed(7)
"""
END = """
assert "xpurt._C" in sys.modules
drawn = torch.randn(3, device="xpu")
torch.manual_seed(7)
assert torch.equal(drawn, torch.randn(3, device="xpu")), "the seed is lost"
"""
# Their numbers are drawn within the use, or they seed.
NO_SEED = {"a function imported from a part", "in several threads"}


def parameters() -> list[object]:
    slow = pytest.mark.slow
    return [pytest.param(u, marks=[slow] if u in SLOW else []) for u in USES]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("use", parameters())
def test_a_first_use(use: str) -> None:
    end = "" if use in NO_SEED else END
    ended = run(f"{START}\n{USES[use]}\n{end}")
    assert ended.returncode == 0, ended.stderr


def test_a_program_on_cpu_tensors_loads_nothing() -> None:
    code = """
import io, sys, warnings
import torch
torch.manual_seed(1)
x = torch.randn(4, 4, requires_grad=True)
(x @ x).sum().backward()
assert not x.is_pinned() and not torch.xpu.is_initialized()
assert bool(torch.version.xpu) is not bool(torch.version.cuda)
list(torch.utils.data.DataLoader([torch.ones(2)] * 4, batch_size=2))
file = io.BytesIO()
torch.save(x, file)
file.seek(0)
assert torch.equal(torch.load(file), x)
torch.from_dlpack(x.detach().numpy())
x.detach().share_memory_()
distributed = torch.distributed
distributed.init_process_group(
    "gloo", store=distributed.HashStore(), rank=0, world_size=1
)
distributed.all_reduce(x.detach(), group=distributed.new_group([0]))
distributed.destroy_process_group()
print([name for name in sys.modules if name.partition(".")[0] in ("xpurt", "dpctl")])
print("sycl" in open("/proc/self/maps").read())
"""
    asks_for_gpus = ["xpurt.startup.cuda_gpu"] if torch.version.cuda else []
    assert output(code).splitlines() == [
        str([*asks_for_gpus, "xpurt.startup.first_use", "xpurt._first_use"]),
        "False",
    ]


def test_a_step_of_an_optimizer_loads_no_driver_and_warns_of_nothing() -> None:
    code = """
import torch, xpurt
x = torch.ones(3, requires_grad=True)
x.sum().backward()
torch.optim.Adam([x], capturable=False).step()
optimizer = torch.optim.SGD([x], lr=0.1)
optimizer.param_groups[0]["capturable"] = True
optimizer.step()
print("libintelocl" in open("/proc/self/maps").read(), torch.xpu.is_initialized())
"""
    assert output(code, XPURT_MAPPING="") == "False False"


def test_a_first_use_that_fails_warns_once_and_leaves_pytorch_as_it_is() -> None:
    code = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "xpurt._C":
            raise ImportError("no libsycl")
sys.meta_path.insert(0, Broken())
import torch
for _ in range(2):
    print(torch.xpu.is_available(), torch.accelerator.current_accelerator())
x = torch.ones(2, requires_grad=True)
x.sum().backward()
try:
    torch.ones(2, device="xpu")
except Exception as error:
    print(type(error).__name__)
"""
    ended = run(code)
    # A CUDA build has an accelerator without xpurt, too.
    without = f"False {'cuda' if torch.version.cuda else None}"
    assert ended.stdout.splitlines()[:2] == [without] * 2, ended.stderr
    assert ended.stderr.count("no xpu device: no libsycl") == 1, ended.stderr


@pytest.mark.parametrize("autoload", ["1", "0"])
def test_the_fallback_runs_an_op_of_another_library(autoload: str) -> None:
    """With the fallbacks of `import torch`, which stay, and with the extension's own."""
    code = """
import torch, xpurt
library = torch.library.Library("mine", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: 2 * x, "CPU")
x = torch.ones(2, device="xpu")
print(torch.ops.mine.twice(x).tolist(), torch.ops.mine.twice(x).device)
sparse = x.to_sparse()
print(torch.sparse.sum(sparse).item())
dump = torch._C._dispatch_dump_table("mine::twice")
print(*[line for line in dump.splitlines() if line.startswith("XPU:")])
"""
    lines = output(code, TORCH_DEVICE_BACKEND_AUTOLOAD=autoload).splitlines()
    assert lines[:2] == ["[2.0, 2.0] xpu:0", "2.0"]
    registered = "first_use/module" if autoload == "1" else "dispatch/registration"
    assert f"{registered}.cpp" in lines[2]


@pytest.mark.parametrize("name", ["XPURT_LAZY_COPIES", "XPURT_CPU_KERNELS"])
def test_a_setting_of_cpu_tensors_loads_xpurt_at_once(name: str) -> None:
    code = "import sys, torch; print('xpurt._C' in sys.modules)"
    value = {"XPURT_LAZY_COPIES": "1", "XPURT_CPU_KERNELS": "auto"}[name]
    assert output(code, **{name: value}) == "True"


def test_the_modules_that_xpurt_changes_load_it() -> None:
    """Those that `import torch` has imported have other ways."""
    loaded = set(
        output("import sys, torch; print(*sys.modules)", XPURT_AUTOLOAD="0").split()
    )
    for name in set(after_import._CHANGES) - loaded:
        assert any(f"{name}.".startswith(f"{each}.") for each in first_use.LOADS_XPURT)


def test_the_library_is_linked_to_pytorch_alone() -> None:
    """Not to SYCL, nor to what brings it."""
    library = sys.modules.get("xpurt._first_use")
    paths = Path(first_use.__file__).parents[1].glob("_first_use.*.so")
    path = library.__file__ if library else next(paths)
    told = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True)
    needed = set(re.findall(r"NEEDED.*\[lib(\w+)[-.]", told.stdout))
    assert needed <= {"c10", "torch", "torch_cpu", "torch_python", "stdc", "gcc_s", "c"}


def test_the_module_whose_import_is_the_first_use_is_changed() -> None:
    code = """
    import sys
    import torch
    import torch.distributed.tensor
    print("xpurt.distributed.attention_sharding" in sys.modules)
    """
    assert output(code) == "True"
