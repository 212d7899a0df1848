"""Programs on CPU tensors beside xpurt do what they do without it."""

from pathlib import Path

import pytest
from own_process import compiling_run, output

COMPILED = """
import torch
from torch._inductor.utils import run_and_get_code
from torch.nn.attention.flex_attention import flex_attention

q = torch.randn(1, 1, 128, 16)
found, code = run_and_get_code(torch.compile(flex_attention), q, q, q)
expected = torch.nn.functional.scaled_dot_product_attention(q, q, q)
print(torch.allclose(found, expected, atol=1e-5))

@torch.compile
def add(x, i, v):
    return x.index_put((i,), v, accumulate=True), x.index_reduce(0, i, v, "mean")

halves = torch.rand(64, dtype=torch.bfloat16)
_, more = run_and_get_code(add, halves[:8], torch.randint(0, 8, (64,)), halves)
for each in ("aten.index_put", "aten.index_reduce", "atomic_add"):
    print(each, any(each in text for text in more))
"""


@pytest.mark.rest
def test_compiled_programs(tmp_path: Path) -> None:
    """Inductor asks whether an xpu is there, in functions that decide about CPU tensors."""
    beside, alone = (
        compiling_run(
            COMPILED,
            # Graphs are compiled anew; equal C++ code is compiled once.
            TORCHINDUCTOR_CACHE_DIR=str(tmp_path),
            TORCHINDUCTOR_FX_GRAPH_CACHE="0",
            XPURT_AUTOLOAD=autoload,
            XPURT_MAPPING="",
        )
        for autoload in ("1", "0")
    )
    assert alone.stdout.startswith("True"), alone.stderr
    assert beside.stdout == alone.stdout, beside.stderr
    assert beside.stderr == alone.stderr


SPREAD = """
import sys
import torch

module = torch.nn.Linear(3, 2)
spread = torch.nn.DataParallel(module)
torch.nn.functional.mse_loss(spread(torch.ones(4, 3)), torch.ones(4, 2)).backward()
print(module.weight.device, module.weight.grad.device, "xpurt._C" in sys.modules)
"""


def test_a_module_on_the_cpu_is_spread_over_no_devices() -> None:
    assert output(SPREAD, XPURT_MAPPING="").split() == ["cpu", "cpu", "False"]


def test_a_spread_module_that_moves_later_runs_on_its_device() -> None:
    code = f"""{SPREAD}
spread.eval().to("xpu")
print(spread(torch.ones(4, 3)).device, spread.device_ids, spread.training)
again = torch.nn.DataParallel(torch.nn.Linear(3, 2))
print(again.device_ids, again(torch.ones(4, 3)).device)
"""
    assert output(code, XPURT_MAPPING="CPU").splitlines()[1:] == [
        "xpu:0 [0] False",
        "[0] xpu:0",
    ]
