"""Compiled programs on an ordinal of several devices: processes of their own."""

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
