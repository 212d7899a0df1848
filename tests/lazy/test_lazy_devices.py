"""The types of the devices behind lazy ones. A process has one lazy backend."""

import pytest
from own_process import compiling_output, output

START = """
import logging, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt, xpurt.lazy
from torch import nn

def refused(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""

TRAINING = (
    START
    + """
xpurt.lazy.init(compile="never", device=DEVICE)

def losses(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
    net = net.to(device)
    steps = torch.optim.Adam(net.parameters(), 0.01)
    found = []
    for _ in range(3):
        x, y = torch.randn(32, 8, device=device), torch.randperm(32, device=device) % 4
        steps.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        steps.step()
        xpurt.lazy.step(wait=True)
        found.append(loss.detach().cpu())
    return torch.stack(found)

torch.testing.assert_close(losses("lazy"), losses(DEVICE))
print({row.device for row in xpurt.op_report() if row.op.startswith("lazy graph")})
"""
)


def test_a_network_trains_on_the_cpu() -> None:
    assert output(TRAINING.replace("DEVICE", "'cpu'")) == "{'cpu'}"


@pytest.mark.rest
@pytest.mark.parametrize("memory", ["host", "xpu"])
def test_a_network_trains_on_a_prototype(memory: str) -> None:
    made = f'import xpurt\nxpurt.prototype_device("ipu", {memory!r})\n'
    assert output(made + TRAINING.replace("DEVICE", "'ipu'")) == "{'ipu:0'}"


COMPILED = (
    START
    + """
def run(x):
    return ((x.sin() * 1.5) @ x).softmax(-1)

x = torch.randn(9, 9)
for device in ("cpu", "xpu", "cpu"):
    xpurt.lazy.init(compile="always", device=device)
    torch.testing.assert_close(run(x.to("lazy")).cpu(), run(x))
print([each.error for each in xpurt.lazy.compilations()])
print(sorted({row.device for row in xpurt.op_report() if row.op.startswith("lazy graph")}))
"""
)


@pytest.mark.rest
def test_each_type_has_graphs_of_its_own() -> None:
    found = compiling_output(COMPILED, XPURT_LEARN="0").splitlines()
    assert found == ["['', '']", "['cpu', 'xpu:0']"]


GRADIENTS = (
    START
    + """
if DEVICE != "cpu":
    xpurt.prototype_device(DEVICE)
xpurt.lazy.init(compile="always", device=DEVICE)
x = torch.arange(4.0).to("lazy").requires_grad_()
for _ in range(2):  # the compiler's import, in the first step, defines ops
    (x * x).sum().backward()
    xpurt.lazy.step(wait=True)
print(x.grad.tolist(), {each.error for each in xpurt.lazy.compilations()})
"""
)


@pytest.mark.rest
@pytest.mark.parametrize("device", ["cpu", "ipu"])
def test_graphs_with_gradients_are_compiled(device: str) -> None:
    code = GRADIENTS.replace("DEVICE", repr(device))
    assert compiling_output(code) == "[0.0, 4.0, 8.0, 12.0] {''}"


SWITCHED = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.ones(2, 3).to("lazy")
kept = [x, x + 1]
kept.append(kept)  # in a cycle
print(refused(xpurt.lazy.init, device="cpu"))
assert (x + 1).cpu().tolist() == [[2.0] * 3] * 2
xpurt.lazy.init(compile="never")  # the type stays
del x, kept
xpurt.lazy.init(compile="never", device="cpu")
print(xpurt.lazy.real_device(), torch._C._lazy._get_default_device_type())
print(refused(xpurt.lazy.init, device="cuda"))
xpurt.prototype_device("ipu")
print(refused(xpurt.lazy.init, device="gpu"))
print(refused(xpurt.lazy.mode().__enter__))
"""
)


def test_the_type_changes_while_no_lazy_tensor_is_alive() -> None:
    alive, now, unknown, after, mode = output(SWITCHED).splitlines()
    assert alive.startswith(
        'RuntimeError: lazy tensors are to be on "cpu", and 2 are alive '
        '(Float[2,3], Float[2,3]) on "xpu". Delete them'
    ), alive
    assert now == "cpu CPU"
    assert unknown.startswith(
        "ValueError: device is one of 'xpu', 'cpu'; found 'cuda'. "
    )
    assert after.startswith("ValueError: device is one of 'xpu', 'cpu', 'ipu'; found")
    assert mode.startswith(
        "RuntimeError: xpurt.lazy.mode() traces tensors of xpu, and lazy tensors are on "
        '"cpu": call xpurt.lazy.init(device="xpu") before'
    ), mode


BOTH_WAYS = (
    START
    + """
xpurt.set_xpu_mapping("explicit", devices="cpu", partition=2)
xpurt.prototype_device("ipu", devices=3)
print(refused(xpurt.lazy.real_device))
for device, count in (("xpu", 2), ("ipu", 3), ("cpu", 1)):
    xpurt.lazy.init(compile="never", device=device)
    for index in range(count):
        lazy = torch.device("lazy", index)
        real = torch.device(device) if device == "cpu" else torch.device(device, index)
        assert xpurt.lazy.real_device(f"lazy:{index}") == real, real
        assert xpurt.lazy.lazy_device(real) == lazy, real
        x = torch.ones(3, device=lazy) + 1
        assert x.device == lazy and xpurt._lazy.real_value(x).device == real, real
        del x
    print(refused(xpurt.lazy.real_device, f"lazy:{count}"))
print(*(name for name, _ in xpurt._lazy.backend_devices()))
print(*(str(real) for _, real in xpurt._lazy.backend_devices()))
print(refused(xpurt.lazy.lazy_device, "xpu:1"))
print(refused(xpurt.lazy.real_device, "xpu:1"))
"""
)


def test_from_a_lazy_device_to_the_one_behind_it_and_back() -> None:
    before, *beyond, names, devices, other, real = output(BOTH_WAYS).splitlines()
    assert before.startswith("RuntimeError: xpurt.lazy.real_device() needs xpu as the")
    assert beyond == [
        f'IndexError: lazy:{count} stands for the device {count} of the type "{type}", '
        f"which has {count}. Take an index below that."
        for type, count in (("xpu", 2), ("ipu", 3), ("cpu", 1))
    ]
    assert names == "XPU0 XPU1 CPU0 IPU0 IPU1 IPU2"
    assert devices == "xpu:0 xpu:1 cpu ipu:0 ipu:1 ipu:2"
    assert other.startswith('ValueError: lazy tensors are on "cpu"; found xpu:1. ')
    assert real.startswith("ValueError: real_device() takes a device of the type")


MOVED = (
    START
    + """
xpurt.set_xpu_mapping("explicit", devices="cpu", partition=2)
xpurt.lazy.init(compile="never")
x = torch.arange(3, device="lazy:0") * 2
moved = x.to("lazy:1", torch.float64)
assert moved.dtype == torch.float64 and moved.device == torch.device("lazy:1")
x += 1
moved += 0.5
print((moved * 2).tolist(), x.tolist(), xpurt._lazy.real_value(moved).device)
"""
)


def test_a_lazy_tensor_moves_to_another_ordinal() -> None:
    assert output(MOVED) == "[1.0, 5.0, 9.0] [1, 3, 5] xpu:1"


MODULE = (
    START
    + """
xpurt.lazy.init(compile="never", device="cpu")
torch.lazy.manual_seed(3)
state = torch.lazy.get_rng_state()
first = torch.randn(3, device="lazy").cpu()
torch.lazy.set_rng_state(state)
assert torch.randn(3).equal(first)
torch.lazy.synchronize()
print(torch.lazy.current_device(), torch.lazy.device_count())
print(refused(torch.lazy.memory_allocated))
with torch.lazy.device(0):
    net = nn.Linear(3, 3).to("lazy")
x = torch.ones(2, 3, device="lazy", requires_grad=True)
drop = lambda x: nn.functional.dropout(net(x), 0.5)
torch.utils.checkpoint.checkpoint(drop, x, use_reentrant=False).sum().backward()
assert x.grad.shape == (2, 3)
"""
)


def test_the_module_of_lazy_tensors_is_that_of_the_device_behind() -> None:
    counts, memory = output(MODULE).splitlines()
    assert counts == "0 1"
    assert memory.startswith(
        "NotImplementedError: torch.lazy.memory_allocated is that of the device behind "
        'lazy tensors, "cpu", which has none.'
    )
