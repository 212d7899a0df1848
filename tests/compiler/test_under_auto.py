"""Compiled programs on several devices: processes of their own."""

import pytest
from own_process import compiling_run as run


@pytest.mark.rest
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


BRANCHES = """
    import torch, warnings, xpurt
    from xpurt import _C
    from xpurt.testing import fail_virtual_gpu

    x = torch.rand(1 << 16, device="xpu")
    # Two devices that compute slowly, so that a copy pays.
    _C.set_device_costs(0, [(1, 1e4, 1e2, 1, 1e4)] * 2)

    def program(x):
        left, right = x, x
        for _ in range(3):
            left, right = torch.tanh(left), torch.cos(right)
        return left, right

    compiled = torch.compile(program)

    def kernels_of_a_call():
        found = xpurt.explain(compiled, x)
        torch.testing.assert_close(found.result, program(x))
        rows = [row for row in found if row.op.startswith("opencl_kernel")]
        return len(rows), {row.device for row in rows}, {row.why for row in rows}
"""
ON_TWO_DEVICES = {
    "XPURT_MAPPING": "AUTO",
    "XPURT_VIRTUAL_GPU": "strict",
    "XPURT_KERNEL_POLICY": "sycl",
}


def test_branches_of_a_graph_are_planned_on_two_devices() -> None:
    """They read the same tensor, so that one device alone would run them as one kernel."""
    ended = run(
        BRANCHES
        + """
    count, devices, reasons = kernels_of_a_call()
    print("found", count, len(devices), reasons)
    torch.compiler.reset()
    _C.set_device_costs(0, [(1, 1e4, 1e2, 1e9, 1)] * 2)  # copies take forever
    count, devices, reasons = kernels_of_a_call()
    print("found", count, len(devices), reasons)
        """,
        timeout=240,
        **ON_TWO_DEVICES,
    )
    found = [line for line in ended.stdout.splitlines() if line.startswith("found")]
    assert found == [
        "found 2 2 {'planned with the whole graph'}",
        "found 1 1 {'predicted to finish first, by costs alone'}",
    ], ended.stderr


def test_a_device_that_is_gone_when_a_planned_graph_is_called() -> None:
    ended = run(
        BRANCHES
        + """
    kernels_of_a_call()
    fail_virtual_gpu()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        first = kernels_of_a_call()
    print("found", [str(each.message) for each in said if "GPU" in str(each.message)])
    print("found", len(first[1]), kernels_of_a_call() == first, first[2])
        """,
        timeout=240,
        **ON_TWO_DEVICES,
    )
    found = [line for line in ended.stdout.splitlines() if line.startswith("found")]
    assert "not used for xpu any more" in found[0], ended.stderr
    assert found[1].startswith("found 1 True")
    assert "the device that was planned can't run it" in found[1]
