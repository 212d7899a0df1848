"""Networks on the device "lazy" train to the losses of the CPU.

Each program has a process of its own: a process has one lazy backend, and the mapping is
fixed once it has tensors.
"""

from pathlib import Path

import pytest
from lazy_mappings import with_gpu
from own_process import output

START = f"""
import contextlib, sys, torch
sys.path.insert(0, {str(Path(__file__).parent)!r})
import xpurt.lazy
from lazy_networks import NETWORKS, OPTIMIZERS, mlp

torch.set_num_threads(1)
xpurt.lazy.init()

def losses(make, optimizer, device, casts=contextlib.nullcontext):
    torch.manual_seed(0)
    net = make().to(device)
    steps = OPTIMIZERS[optimizer](net.parameters())
    found = []
    for _ in range(3):
        steps.zero_grad()
        with casts():
            loss = net.loss()
        loss.backward()
        steps.step()
        if device == "lazy":
            xpurt.lazy.step()
        found.append(loss.detach())
    return torch.stack(found).cpu()
"""

FLOAT32 = (
    START
    + """
runs = [(make, "adam") for make in NETWORKS] + [(mlp, each) for each in ("sgd", "adamw")]
for make, optimizer in runs:
    found, want = (losses(make, optimizer, each) for each in ("lazy", "cpu"))
    torch.testing.assert_close(found, want, rtol=2e-4, atol=2e-5, msg=lambda m: f"{make.__name__}: {m}")
print("the same", xpurt.lazy.fallbacks())
"""
)

BFLOAT16 = (
    START
    + """
def on_cpu():
    return torch.autocast("cpu", torch.bfloat16)

for make in NETWORKS:
    found = losses(make, "adam", "lazy", xpurt.lazy.autocast)
    assert found.dtype == torch.float32
    exact = losses(make, "adam", "cpu")
    # Stock PyTorch raises for an LSTM in bfloat16 on a CPU without AVX-512.
    stock = make.__name__ != "lstm" or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    want = losses(make, "adam", "cpu", on_cpu) if stock else exact
    torch.testing.assert_close(found, want, rtol=0.03, atol=0.03, msg=lambda m: f"{make.__name__}: {m}")
    if make.__name__ not in ("lstm", "gru"):  # their products are in C++, but for the last
        assert not torch.equal(found, exact), make
    assert found[-1] < found[0]
print("the same", xpurt.lazy.fallbacks())
"""
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("code", "mapping"),
    [
        pytest.param(FLOAT32, "CPU", id="float32-CPU"),
        pytest.param(FLOAT32, "GPU", id="float32-GPU", marks=pytest.mark.slow),
        pytest.param(FLOAT32, "AUTO", id="float32-AUTO"),
        pytest.param(BFLOAT16, "CPU", id="bfloat16-CPU", marks=pytest.mark.slow),
        pytest.param(BFLOAT16, "GPU", id="bfloat16-GPU"),
        pytest.param(BFLOAT16, "AUTO", id="bfloat16-AUTO", marks=pytest.mark.slow),
    ],
)
def test_losses_are_those_of_the_cpu(code: str, mapping: str) -> None:
    found = output(code, XPURT_MAPPING=with_gpu(mapping), timeout=120)
    assert found == "the same {}"


CHECKPOINTED = (
    START
    + """
from torch import nn
from torch.utils.checkpoint import checkpoint

def gradients(device, reentrant=None):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)).to(device)
    x = torch.ones(4, 8).to(device).requires_grad_()
    y = net(x) if reentrant is None else checkpoint(net, x, use_reentrant=reentrant)
    y.square().sum().backward()
    return [x.grad.cpu(), *(each.grad.cpu() for each in net.parameters())]

for reentrant in (None, False, True):
    for lazy, eager in zip(gradients("lazy", reentrant), gradients("xpu"), strict=True):
        torch.testing.assert_close(lazy, eager)
print("the same", xpurt.lazy.fallbacks())
"""
)


def test_a_checkpoint_draws_the_same_numbers_again() -> None:
    assert output(CHECKPOINTED) == "the same {}"


AUTOCAST = (
    START
    + """
try:
    torch.autocast("lazy")
except RuntimeError as error:
    print(error)
try:
    xpurt.lazy.autocast(torch.int8)
except ValueError as error:
    print(error)
x = torch.ones(3, 3, device="lazy")
with xpurt.lazy.autocast():
    print((x @ x).dtype, (x @ x).sum().dtype, (x.cpu() @ x.cpu()).dtype)
print((x @ x).dtype)
"""
)


def test_autocast_of_lazy_tensors() -> None:
    assert output(AUTOCAST).splitlines() == [
        "unsupported scalarType",
        "autocast takes torch.bfloat16 or torch.float16; found torch.int8",
        "torch.bfloat16 torch.float32 torch.float32",
        "torch.float32",
    ]


COPIES = (
    START
    + """
net = mlp().to("lazy")
saved = {name: each + 1 for name, each in mlp().state_dict().items()}
net.load_state_dict(saved)
for name, each in net.state_dict().items():
    assert each.device.type == "lazy" and torch.equal(each.cpu(), saved[name])
x = torch.ones(3, device="lazy") + 1
source = torch.full((3,), 7.0)
for device in ("cpu", "xpu"):
    target = torch.zeros(3, device=device)
    target.copy_(x)
    assert target.tolist() == x.tolist()
    source = source.to(device)
    x[1:].copy_(source[1:])
    source += 1  # after the copy
    assert x[1:].tolist() == [source[0].item() - 1] * 2
print("the same", xpurt.lazy.fallbacks())
"""
)


def test_copies_between_devices() -> None:
    assert output(COPIES) == "the same {}"
