"""A compiled graph of one process is used by the next one."""

from pathlib import Path

import pytest
from own_process import compiling_run as run


def compile_in(folder: Path, before: str = "") -> str:
    """Compiles a forward and a backward graph in a new process, with Inductor's cache in
    the folder. Returns how many it did not find there, and how many it found."""
    ended = run(
        f"""
import os
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {str(folder)!r}
import torch
from torch._dynamo.utils import counters
{before}
x = torch.linspace(-1, 1, 64).to("xpu").requires_grad_()
torch.compile(lambda x: x.sin().exp().sum())(x).backward()
(expected,) = torch.autograd.grad(x.sin().exp().sum(), x)
torch.testing.assert_close(x.grad, expected)
print([counters["inductor"][f"fxgraph_cache_{{each}}"] for each in ("miss", "hit")])
""",
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.rest
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert compile_in(tmp_path) == "[2, 0]"
    assert compile_in(tmp_path) == "[0, 2]"
    other_sources = """
from xpurt.compiler import host_code
host_code._sources = lambda *rooms: "other"
"""
    assert compile_in(tmp_path, other_sources) == "[2, 0]"


def test_a_second_process_builds_no_kernel(tmp_path: Path) -> None:
    """In the sycl form: neither a graph nor a kernel, forward and backward."""
    code = f"""
import os
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {str(tmp_path / "graphs")!r}
import torch, xpurt
from torch._dynamo.utils import counters
from torch import nn
from xpurt import _C
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.Flatten(),
                      nn.Linear(288, 4), nn.Softmax(-1)).to("xpu")
x = torch.randn(2, 3, 8, 8).to("xpu")
with xpurt.kernel_policy("sycl"):
    torch.compile(model)(x).square().sum().backward()
    torch.xpu.synchronize()
compiled = counters["inductor"]["fxgraph_cache_miss"]
print(compiled, _C.testing.built_kernels() - _C.testing.loaded_kernels())
"""
    compiled, built = map(int, kernels_of(code, tmp_path).split())
    assert compiled == 2
    assert built > 4
    assert kernels_of(code, tmp_path) == "0 0"


def kernels_of(code: str, folder: Path) -> str:
    ended = run(code, timeout=300, XPURT_CACHE_DIR=str(folder / "kernels"))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()
