"""What xpurt.autocast changes of PyTorch, each in a process of its own."""

import subprocess
import sys


def test_the_rfc_s_program_with_torch_autocast() -> None:
    """In a process of its own: torch.autocast changes."""
    program = """
import torch, xpurt

model, data = torch.nn.Sequential(torch.nn.Conv2d(3, 5, 5), torch.nn.Softmax(1)), torch.rand(2, 3, 9, 9)
try:
    torch.autocast(dtype=torch.bfloat16, layout=torch.mkldnn)
except TypeError:
    pass
else:
    raise AssertionError("torch.autocast takes a layout by itself")
pytorchs = torch.autocast("cpu", torch.bfloat16)
xpurt.autocast.add_to_torch()
xpurt.autocast.add_to_torch()
for device in ("cpu", "xpu"):
    with torch.autocast(dtype=torch.bfloat16, layout=torch.mkldnn):
        res = model.to(device)(data.to(device))
    with torch.autocast(device, torch.bfloat16):
        wanted = model(data.to(device))
    assert res.dtype == wanted.dtype and res.is_contiguous()
    torch.testing.assert_close(res, wanted, rtol=0.02, atol=0.02)
model.cpu()
run = torch.compile(
    torch.autocast(dtype=torch.bfloat16, layout=torch.mkldnn)(model), backend="eager"
)
assert run(data).dtype == torch.bfloat16
assert type(torch.autocast("cpu", torch.bfloat16)) is type(pytorchs) is torch.autocast
torch.autocast.__init__ = lambda self, layout: None
try:
    xpurt.autocast.add_to_torch()
except RuntimeError as error:
    assert "takes a layout already" in str(error)
else:
    raise AssertionError("a torch.autocast with a layout was replaced")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_outside_of_a_block_pytorch_is_as_it_was() -> None:
    """In a process of its own: PyTorch's kernels stay, and the keys of a block are those of
    device types that are not here."""
    program = """
import sys, torch, xpurt

def kernels():
    dump = torch._C._dispatch_dump("aten::conv2d").splitlines()
    return [each for each in dump if "xpurt" not in each]

def of_thread():
    keys = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    return [each.raw_repr() for each in keys]

before, keys = kernels(), of_thread()
with xpurt.autocast("cpu", torch.bfloat16):
    pass
assert "xpurt" not in torch._C._dispatch_dump("aten::conv2d")
assert "xpurt._layouts" not in sys.modules
with xpurt.autocast("cpu", torch.bfloat16, layout=torch.mkldnn):
    assert of_thread() != keys
    torch.nn.Conv2d(3, 8, 3)(torch.randn(1, 3, 8, 8)).relu()
    assert not torch._C._is_torch_function_mode_enabled()
assert of_thread() == keys
assert kernels() == before
for key in ("AutocastCPU", "AutocastXPU", "AutogradCPU", "CPU"):
    lines = [each for each in torch._C._dispatch_dump("aten::relu").splitlines() if each.startswith(key + ":")]
    assert "layouts" not in "".join(lines), lines
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_keys_of_prototype_devices() -> None:
    """A block takes Autocast keys of types that are free when it is the first one."""
    program = """
import torch, xpurt

xpurt.prototype_device("xla")
layer, x = torch.nn.Conv2d(3, 8, 3), torch.randn(1, 3, 8, 8)
with xpurt.autocast("cpu", torch.bfloat16, layout=torch.mkldnn):
    y = layer(x)
    assert not y.is_contiguous()
    y.view(-1)
with torch.autocast("xla", torch.bfloat16):
    assert (x.to("xla").flatten(1) @ x.to("xla").flatten(1).T).dtype == torch.bfloat16
try:
    xpurt.prototype_device("ipu")
except ValueError as error:
    assert "Make the device before" in str(error)
else:
    raise AssertionError("the key of ipu is used for two things")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
