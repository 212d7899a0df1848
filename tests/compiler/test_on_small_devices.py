"""Generated kernels on devices that have less than a CPU, each in a process of its own."""

import json

import pytest
from own_process import compiling_run

COMPILED = """
import json
import torch, xpurt
import torch.nn.functional as F

xpurt.set_xpu_mapping("GPU")
CALLS = dict(
    pointwise=lambda x: torch.sigmoid(x).sin() * 2 + x,
    transposed=lambda x: x + x.t(),
    rows=lambda x: x.softmax(-1),
    columns=lambda x: x.sum(0),
    norm=lambda x: F.layer_norm(x, x.shape[-1:]),
    all=lambda x: x.square().sum(),
)
torch.manual_seed(0)
x = torch.randn(130, 130)
wrong = {}
for name, call in CALLS.items():
    torch._dynamo.reset()
    try:
        result = torch.compile(call)(x.to("xpu")).cpu()
        torch.testing.assert_close(result, call(x), rtol=1e-4, atol=1e-4)
    except Exception as error:
        wrong[name] = f"{type(error).__name__}: {error}"[:300]
print(json.dumps([wrong, [each.op for each in xpurt.op_report() if each.tier == "copy"]]))
"""


@pytest.mark.parametrize(
    "limits",
    [
        "sub_groups=8,work_group=32,local_memory=8192",
        "sub_groups=0,work_group=64,opencl=1.2",
        "sub_groups=32",
    ],
)
def test_generated_kernels_fit_the_device(limits: str) -> None:
    done = compiling_run(
        COMPILED,
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_FP64="0",
        XPURT_VIRTUAL_GPU_FP16="0",
        XPURT_VIRTUAL_GPU_LIMITS=limits,
        XPURT_MAPPING="",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [{}, []]
