"""Kernels on devices that have less than a CPU: each is a process with a virtual GPU."""

import json
from collections.abc import Mapping

import pytest
from kinds_of_gpus import AMD, INTEL, NVIDIA
from own_process import run

# Ops of each kind of kernel, with sizes beyond a work-group and a tile.
OPS = """
import json, warnings
import torch, xpurt
import torch.nn.functional as F

xpurt.set_xpu_mapping("GPU")
xpurt.set_kernel_policy("sycl")
torch.manual_seed(0)
DTYPE = torch.{dtype}

def with_gradients(op, x):
    x = x.clone().requires_grad_()
    y = op(x)
    (grad,) = torch.autograd.grad(y, x, y.detach() * 2 - 1)
    return y.detach().flatten(1)[:, :128] + grad[:, :128]

CALLS = dict(
    pointwise=lambda x: torch.sigmoid(x) + 1.5,
    transposed=lambda x: x.t() * x[:, :1],
    sum_rows=lambda x: x.sum(-1),
    sum_columns=lambda x: x.sum(0),
    argmax=lambda x: x.argmax(-1).to(x.dtype),
    softmax=lambda x: x.softmax(-1),
    softmax_columns=lambda x: x.softmax(0),
    layer_norm=lambda x: F.layer_norm(x, x.shape[-1:]),
    batch_norm=lambda x: with_gradients(lambda x: F.batch_norm(
        x[:, :, None], None, None, training=True), x),
    group_norm=lambda x: with_gradients(lambda x: F.group_norm(x[:, :128, None], 4), x),
    matmul=lambda x: x @ x,
    bmm=lambda x: torch.bmm(x[None, :70], x[None]),
    cumsum=lambda x: x.cumsum(-1),
    sort=lambda x: x.sort(-1).values,
    gather=lambda x: x.gather(0, x.argsort(0)),
    attention=lambda x: F.scaled_dot_product_attention(
        *(x[:, :32].reshape(1, 2, -1, 32) for _ in range(3))
    ),
    pool=lambda x: F.max_pool2d(x[None, None], 3),
    losses=lambda x: F.ctc_loss(
        x[:, :8].unsqueeze(1).log_softmax(-1),
        torch.tensor([[1, 2, 3]], device=x.device),
        torch.tensor([x.shape[0]]),
        torch.tensor([3]),
    ) + F.cross_entropy(x, torch.arange(x.shape[0], device=x.device)),
)
x = torch.randn(130, 130).to(DTYPE)
close = dict(rtol=1e-2, atol=1e-1) if DTYPE is torch.float16 else dict(rtol=1e-4, atol=1e-4)
wrong = {{}}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for name, call in CALLS.items():
        if name in {skipped!r}:
            continue
        try:
            torch.testing.assert_close(call(x.to("xpu")).cpu(), call(x), **close)
        except Exception as error:
            wrong[name] = f"{{type(error).__name__}}: {{error}}"[:300]
copied = sorted({{each.op for each in xpurt.op_report() if each.tier == "copy"}})
print(json.dumps([wrong, copied, [str(each.message)[:200] for each in said]]))
"""

SMALL = "sub_groups=0,work_group=64,local_memory=8192"
DEVICES = {
    "as the CPU": {},
    "sub-groups of 32": {"LIMITS": "sub_groups=32"},
    "sub-groups of 8": {"LIMITS": "sub_groups=8,work_group=32"},
    "no sub-groups, small groups": {"LIMITS": SMALL},
    "OpenCL 1.2": {"LIMITS": f"opencl=1.2,{SMALL}"},
    "as an Intel GPU": INTEL,
    "as an NVIDIA GPU": NVIDIA,
    "as an AMD GPU": AMD,
    "no doubles, no halves": {"FP64": "0", "FP16": "0", "LIMITS": "work_group=128"},
}


def computed(
    dtype: str,
    skipped: tuple[str, ...] = (),
    more: Mapping[str, str] | None = None,
    **settings: str,
) -> tuple[dict[str, str], list[str], list[str]]:
    variables = {f"XPURT_VIRTUAL_GPU_{name}": text for name, text in settings.items()}
    done = run(
        OPS.format(dtype=dtype, skipped=skipped),
        XPURT_VIRTUAL_GPU="strict",
        XPURT_MAPPING="",
        **variables,
        **(more or {}),
    )
    assert done.returncode == 0, done.stderr
    wrong, copied, said = json.loads(done.stdout.splitlines()[-1])
    return wrong, copied, said


# "OpenCL 1.2" has no sub-groups either.
LEFT_OUT = ("as the CPU", "sub-groups of 8", "no sub-groups, small groups")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "device",
    [
        pytest.param(each, marks=[pytest.mark.slow] if each in LEFT_OUT else [])
        for each in DEVICES
    ],
)
def test_kernels_fit_the_device(device: str) -> None:
    wrong, copied, said = computed("float32", **DEVICES[device])
    assert (wrong, copied, said) == ({}, [], [])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("device", ["as an Intel GPU", "as an NVIDIA GPU"])
def test_kernels_stay_within_their_tensors(device: str) -> None:
    alone = {"XPURT_NO_MEMORY_CACHING": "1"}
    wrong, copied, said = computed("float32", more=alone, **DEVICES[device])
    assert (wrong, copied, said) == ({}, [], [])


@pytest.mark.rest
def test_halves_need_no_arithmetic_in_half() -> None:
    wrong, copied, said = computed("float16", ("losses",), FP16="0")
    assert (wrong, copied, said) == ({}, [], [])


def test_doubles_go_to_the_host_with_a_warning_per_op() -> None:
    wrong, copied, said = computed("float64", FP64="0")
    assert wrong == {}
    assert "aten::mm" in copied
    first = [line.split(" has no kernel")[0] for line in said]
    assert "aten::mm" in first
    assert len(first) == len(set(first))


# Ops whose kernels on such a device are ops of xpurt's own, which PyTorch has no kernel for,
# and ops whose results are wider than their operands.
DOUBLES = """
import json, warnings
import torch, xpurt
import torch.nn.functional as F

xpurt.set_xpu_mapping("GPU")
xpurt.set_kernel_policy("sycl")

def stepped(x, optimizer):
    p = torch.nn.Parameter(x.clone())
    made = optimizer([p])
    p.square().sum().backward()
    made.step()
    return p.detach()

def scaled(x):
    p = torch.nn.Parameter(x.clone())
    scaler = torch.amp.GradScaler(x.device.type)
    sgd = torch.optim.SGD([p], lr=0.1)
    scaler.scale(p.sum()).backward()
    scaler.step(sgd)
    return p.detach()

D = torch.float64
CALLS = dict(
    unpool=lambda x: F.max_unpool2d(*F.max_pool2d(x[None, None], 2, return_indices=True), 2),
    embedding_bag=lambda x: F.embedding_bag(
        torch.tensor([[0, 1], [2, 3]], device=x.device), x
    ),
    trigamma=lambda x: torch.polygamma(1, x),
    ctc=lambda x: F.ctc_loss(
        x.unsqueeze(1).log_softmax(-1),
        torch.tensor([[1, 2, 3]], device=x.device),
        torch.tensor([8]),
        torch.tensor([3]),
    ),
    adam=lambda x: stepped(x, lambda p: torch.optim.Adam(p, lr=0.1, fused=True)),
    adagrad=lambda x: stepped(x, lambda p: torch.optim.Adagrad(p, lr=0.1, fused=True)),
    sgd=lambda x: stepped(x, lambda p: torch.optim.SGD(p, lr=0.1, fused=True)),
    scaler=scaled,
    swiglu=lambda x: torch.ops.xpurt.swiglu(x, x),
    wider_scan=lambda x: x.float().cumsum(0, dtype=D),
    wider_sum=lambda x: x.float().sum(dtype=D),
    arange=lambda x: torch.arange(0, 4, 0.5, dtype=D, device=x.device),
    linspace=lambda x: torch.linspace(0, 4, 5, dtype=D, device=x.device),
)
torch.manual_seed(0)
x = torch.rand(8, 8, dtype=D)
wrong = {}
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for name, call in CALLS.items():
        try:
            for _ in range(2):
                result = call(x.to("xpu")).cpu()
            torch.testing.assert_close(result, call(x), rtol=1e-6, atol=1e-6)
        except Exception as error:
            wrong[name] = f"{type(error).__name__}: {error}"[:300]
print(json.dumps([wrong, [str(each.message)[:40] for each in said]]))
"""


def test_results_in_double_never_reach_a_compiler_without_it() -> None:
    done = run(
        DOUBLES,
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_FP64="0",
        XPURT_MAPPING="",
    )
    assert done.returncode == 0, done.stderr
    wrong, said = json.loads(done.stdout.splitlines()[-1])
    assert wrong == {}
    assert any(line.startswith("xpurt::swiglu computes in") for line in said)
    assert len(said) == len(set(said))


# With 8,300 bytes of local memory: the largest tiles of a product need 8,320 in float,
# the next smaller ones 8,448 in double, and those of attention 8,320 for this size.
TILES = """
import json, warnings
import torch, xpurt
import torch.nn.functional as F

xpurt.set_xpu_mapping("GPU")
xpurt.set_kernel_policy("sycl")
xpurt._C.testing.force_vector_width(1)  # tiles, not vectors
torch.manual_seed(0)
x, heads = torch.randn(70, 70), torch.randn(1, 2, 20, 23)

def attention(x, heads):
    heads = heads.requires_grad_()
    F.scaled_dot_product_attention(heads, heads, heads).square().sum().backward()
    return heads.grad

CALLS = dict(
    product=lambda x, heads: x @ x,
    in_double=lambda x, heads: x.double() @ x.double(),
    attention=attention,
)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for call in CALLS.values():
        result = call(x.to("xpu"), heads.detach().to("xpu")).cpu()
        torch.testing.assert_close(result, call(x, heads), rtol=1e-4, atol=1e-4)
print(json.dumps([str(each.message)[:200] for each in said]))
"""


def test_tiles_that_need_a_few_bytes_too_many_are_not_launched() -> None:
    done = run(
        TILES,
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_LIMITS="local_memory=8300",
        XPURT_MAPPING="",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []
