"""A compiled graph of one process is used by the next one."""

from pathlib import Path

from own_process import run


def compile_in(folder: Path, before: str = "") -> str:
    """Compiles a forward and a backward graph in a new process, with Inductor's cache in
    the folder. Returns how many it did not find there, and how many it found."""
    ended = run(f"""
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
""")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert compile_in(tmp_path) == "[2, 0]"
    assert compile_in(tmp_path) == "[0, 2]"
    other_sources = """
from xpurt.compiler import host_code
host_code._sources = lambda *rooms: "other"
"""
    assert compile_in(tmp_path, other_sources) == "[2, 0]"
