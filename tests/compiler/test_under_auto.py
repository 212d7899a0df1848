"""Compiled programs on several devices: processes of their own."""

from own_process import run


def test_a_gradient_in_the_memory_of_a_saved_tensor_is_seen_by_all_devices() -> None:
    code = """
import torch, xpurt
weight = torch.rand(512, 512, device="xpu") / 512
bias = torch.rand(512, 512, device="xpu", requires_grad=True)

def loss(bias):
    return torch.sigmoid(weight @ weight + bias).sum()

def on_gpu(x):
    with xpurt.prefer("GPU"):
        return x + 0

def save(x):
    on_gpu(x)  # the GPU has a copy of the saved tensor then
    return x

compiled = torch.compile(loss)
with torch.autograd.graph.saved_tensors_hooks(save, lambda x: x):
    value = compiled(bias)
(gradient,) = torch.autograd.grad(value * 3, bias)
(expected,) = torch.autograd.grad(loss(bias) * 3, bias)
torch.testing.assert_close(on_gpu(gradient), expected)
print("equal")
"""
    ended = run(code, XPURT_MAPPING="AUTO", XPURT_VIRTUAL_GPU="strict")
    assert ended.stdout == "equal\n", ended.stderr


def test_a_graph_with_tensors_of_two_ordinals() -> None:
    code = """
import torch, xpurt
xpurt.set_xpu_mapping("explicit", devices=["cpu", "opencl:gpu:0"])
a, b = (torch.linspace(0, 1, 1000, device=f"xpu:{i}") for i in range(2))

def program(a, b):
    return a.sin() + b.to("xpu:0"), (b * 2).exp()

compiled = torch.compile(program, fullgraph=True)
for current in range(2):
    torch.xpu.set_device(current)
    torch.testing.assert_close(compiled(a, b), program(a, b))
print([each.device.index for each in compiled(a, b)])
"""
    ended = run(code, XPURT_VIRTUAL_GPU="strict")
    assert ended.stdout == "[0, 1]\n", ended.stderr
