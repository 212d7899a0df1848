"""What a vendor replaces: kernels, derivatives, and functions of the runtime."""

import pytest
from own_process import output
from prototype_programs import environment_of, run

VENDOR = """
library = torch.library.Library("aten", "IMPL")
seen = []
def relu(x):
    seen.append(x.device.type)
    return x.clamp_min(0)
library.impl("relu", relu, "IPU")
class Sin(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        with torch._C._AutoDispatchBelowAutograd():
            return torch.sin(x)
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * x.cos()  # a formula of the vendor's own
library.impl("sin", Sin.apply, "AutogradIPU")
x = torch.tensor([-1.0, 2.0], device="ipu")
assert x.relu().tolist() == [0, 2] and seen == ["ipu"]
assert "aten::relu" not in made.calls()
for device, factor in (("ipu", 2), ("cpu", 1)):
    y = torch.ones(1, device=device, requires_grad=True)
    y.sin().backward()
    torch.testing.assert_close(y.grad.cpu(), factor * torch.ones(1).cos())
print("replaced")
"""


def test_a_vendor_replaces_a_kernel_and_a_derivative() -> None:
    assert "replaced" in run(VENDOR, "ipu", "host")


REPORT = """
library = torch.library.Library("aten", "IMPL")
library.impl("relu", lambda x: x.clamp_min(0), key)
library.impl("convolution_overrideable", lambda x, *rest: x * 3, key)
late = torch.library.Library("aten", "IMPL")
made = xpurt.prototype_device(name, memory=memory)

def rows():
    return {(row.op, row.tier): row for row in xpurt.op_report() if row.device == name}

x = torch.tensor([-1.0, 2.0], device=name)
for _ in range(3):
    x.relu()
x.sin()
found = rows()
assert found["aten::relu", "vendor"].calls == 3
assert found["aten::clamp_min", "alias"].calls == 3
assert found["aten::sin", "alias"].calls == 1
assert ("aten::relu", "alias") not in found
assert found["aten::relu", "vendor"].time_ms >= found["aten::clamp_min", "alias"].time_ms > 0
# A kernel that is registered later is counted from the next call on.
late.impl("sin", lambda x: x + 1, key)
assert xpurt.prototype_device(name, memory=memory) is made
assert x.sin().tolist() == [0, 3]
assert rows()["aten::sin", "vendor"].calls == 1
assert "vendor" in str(xpurt.op_report(reset=True))
assert rows() == {} and made.calls() == {}
x = torch.ones(1, 1, 2, device=name)
assert torch.conv1d(x, x[..., :1]).tolist() == [[[3, 3]]]
print("reported")
"""


@pytest.mark.parametrize(
    ("name", "key", "memory"),
    [
        ("ipu", "IPU", "host"),
        ("mydevice", "PrivateUse1", "gpu"),
        ("mtia", "MTIA", "cpu"),
    ],
)
def test_the_report_shows_who_computed(name: str, key: str, memory: str) -> None:
    code = f"""
import torch, warnings, xpurt
warnings.simplefilter("ignore")
name, key, memory = {name!r}, {key!r}, {memory!r}
"""
    assert "reported" in output(code + REPORT, **environment_of(memory))


RUNTIME = """
import types, torch, xpurt
from xpurt.accelerator_runtime import faults_of
mine = types.ModuleType("mine")
mine.firmware = lambda: "1.2"
mine.get_device_name = lambda device=None: "mine"
made = xpurt.prototype_device("mydevice", runtime=mine)
assert torch.mydevice.firmware() == "1.2"
assert torch.mydevice.get_device_name() == "mine"
assert torch.mydevice.device_count() == 1
assert faults_of(torch.mydevice) == []
print("filled in")
"""


def test_what_the_vendors_runtime_lacks_is_filled_in() -> None:
    assert "filled in" in output(RUNTIME)


TIED = """
net = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
net["b"].weight = net["a"].weight
net.to(name)
assert net["a"].weight is net["b"].weight
assert net["a"].weight.device.type == name
assert len(list(net.parameters())) == 3
print("tied")
"""


@pytest.mark.parametrize("name", ["ipu", "hpu", "mydevice"])
def test_tied_weights_stay_tied(name: str) -> None:
    assert "tied" in run(TIED, name, "host")


DERIVATIVE = """
from xpurt.prototype import register_derivative
class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, alpha=1):
        ctx.alpha = alpha
        with torch._C._AutoDispatchBelowAutograd():
            return torch.add(x, y, alpha=alpha)
    @staticmethod
    def backward(ctx, grad):
        return 10 * grad, ctx.alpha * grad, None
register_derivative("aten::add.Tensor", lambda x, y, *, alpha=1: Sum.apply(x, y, alpha), name)
def fails(x):
    raise KeyError("mine")
register_derivative("sin", fails, name)
register_derivative("frexp.Tensor", lambda x: (x + 0, x.int()), name)
x, y = (torch.ones(2, device=name, requires_grad=True) for _ in range(2))
torch.add(x, y, alpha=3).sum().backward()
assert x.grad.tolist() == [10, 10] and y.grad.tolist() == [3, 3]
assert torch.frexp(x)[1].tolist() == [1, 1]
for call in (lambda: x.sin(), lambda: register_derivative("no_op", fails, name)):
    try:
        call()
    except (KeyError, RuntimeError) as error:
        print(error)
"""


@pytest.mark.parametrize("name", ["mtia", "maia", "ipu", "mydevice"])
def test_a_derivative_on_any_type(name: str) -> None:
    found = run(DERIVATIVE, name, "host").splitlines()
    assert found[0] == "'mine'"
    assert "found 'no_op', which PyTorch does not have" in found[1]
