"""A compiled graph of one process is used by the next one."""

from pathlib import Path

from own_process import run


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    code = f"""
import os
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {str(tmp_path)!r}
import torch
from torch._dynamo.utils import counters

x = torch.linspace(-1, 1, 64).to("xpu").requires_grad_()
torch.compile(lambda x: x.sin().exp().sum())(x).backward()
expected, = torch.autograd.grad(x.sin().exp().sum(), x)
torch.testing.assert_close(x.grad, expected)
print([counters["inductor"][name] for name in ("fxgraph_cache_miss", "fxgraph_cache_hit")])
"""
    for found in ("[2, 0]\n", "[0, 2]\n"):
        ended = run(code)
        assert ended.stdout == found, ended.stderr
