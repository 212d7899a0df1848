"""A prototype device computes, saves and draws as the device behind it does."""

import pytest
from prototype_programs import all_kinds, few_kinds, run

OPS = """
x = torch.arange(12.0).reshape(3, 4)
y = x.to(name)
assert y.device == torch.device(name, 0) and str(y.device) == f"{name}:0", y.device
checks = {
    "view": (y.t()[1:] + 1, x.t()[1:] + 1),
    "product": (y @ y.t(), x @ x.t()),
    "mean": (y.mean(0), x.mean(0)),
    "index": (y[torch.tensor([2, 0], device=name)], x[[2, 0]]),
    "list": (torch.cat([y, y], 1), torch.cat([x, x], 1)),
    "item": (torch.tensor(y.sum().item()), x.sum()),
    "sort": (y.flip(1).sort(1).values, x),
    "convolution": (nn.functional.conv2d(y.view(1, 1, 3, 4), y[:2, :2].reshape(1, 1, 2, 2)),
                    nn.functional.conv2d(x.view(1, 1, 3, 4), x[:2, :2].reshape(1, 1, 2, 2))),
    "arange": (torch.arange(3, device=name), torch.arange(3)),
    "number": (2.5 * y + 1, 2.5 * x + 1),
    # PyTorch's CPU kernel reads an expanded input out of bounds.
    "median": (y[:2, :2].reshape(1, 2, 1, 2).expand(3, 2, 1, 2).median(0).values,
               x[:2, :2].reshape(2, 1, 2)),
    "complex": (torch.complex(y, y).conj() * 1, torch.complex(x, x).conj() * 1),
}
# PyTorch has these layouts on few device types.
if name != "maia":
    checks["sparse"] = y.to_sparse().to_dense(), x
if name == "mydevice":
    checks["csr"] = y.to_sparse_csr() @ y.t(), x @ x.t()
if name in ("hpu", "mydevice"):
    nested = [torch.nested.nested_tensor([of[0], of[1, :2]]) for of in (y, x)]
    checks["nested"] = [each.to_padded_tensor(0.0) for each in nested]
for what, (found, want) in checks.items():
    assert what == "item" or found.device.type == name, (what, found.device)
    torch.testing.assert_close(found.cpu(), want, msg=lambda text: f"{what}: {text}")
assert y[1:].t().clone().stride() == x[1:].t().clone().stride()
assert torch.empty_like(y[:, 1:].t()).stride() == torch.empty_like(x[:, 1:].t()).stride()
y.add_(1)
y[0].zero_()
y.resize_(5, 4)[3:] = 7
want = torch.cat([x.add(1).index_fill(0, torch.tensor([0]), 0), torch.full((2, 4), 7.0)])
torch.testing.assert_close(y.cpu(), want)
out = torch.empty(0, device=name)
torch.sin(y, out=out)
torch.testing.assert_close(out.cpu(), want.sin())
assert made.calls()["aten::sin.out"] == 1, made.calls()
print("the same")
"""


@pytest.mark.one_in(6)
@all_kinds
def test_ops_of_all_layouts(name: str, memory: str) -> None:
    assert "the same" in run(OPS, name, memory)


SAVED = """
net = nn.Linear(3, 2).to(name)
file = io.BytesIO()
torch.save({{"net": net.state_dict(), "x": torch.arange(4, device=name)}}, file)
for where in (None, "cpu", "xpu", name):
    file.seek(0)
    found = torch.load(file, map_location=where)
    assert found["x"].device.type == (where or name), (where, found["x"].device)
    assert found["x"].tolist() == [0, 1, 2, 3]
    torch.testing.assert_close(found["net"]["weight"].cpu(), net.weight.detach().cpu())
copied = copy.deepcopy(net)
assert copied.weight.device.type == name
print("saved")
""".replace("{{", "{").replace("}}", "}")


@pytest.mark.one_in(4)
@few_kinds
def test_save_load_and_copy(name: str, memory: str) -> None:
    assert "saved" in run(SAVED, name, memory)


RUNTIME = """
runtime = getattr(torch, name)
assert torch.get_device_module(name) is runtime is made.runtime
assert runtime.device_count() == 2 and runtime.current_device() == 0
runtime.set_device(1)
assert torch.ones(2, device=name).device.index == 1
with runtime.device(0):
    assert torch.ones(2, device=name).device.index == 0
x = torch.ones(2)
assert getattr(x, name)().device == torch.device(name, 1)
assert getattr(nn.Linear(2, 2), name)(0).weight.device == torch.device(name, 0)
assert getattr(getattr(x, name)(), f"is_{name}")
runtime.set_device(0)
runtime.manual_seed_all(5)
first = torch.rand(4, device=name), nn.functional.dropout(torch.ones(8, device=name), 0.5)
runtime.manual_seed_all(5)
again = torch.rand(4, device=name), nn.functional.dropout(torch.ones(8, device=name), 0.5)
assert all(torch.equal(one, other) for one, other in zip(first, again))
dropped, _ = torch.native_dropout(torch.ones(8, device=name), 1.0, True)
assert torch.equal(dropped.cpu(), torch.zeros(8)), dropped.cpu()
cpu_state = torch.get_rng_state()
torch.rand(4, device=name)
assert torch.equal(cpu_state, torch.get_rng_state()), "it drew from the CPU's generator"
torch.manual_seed(7)
first = torch.rand(4, device=name)
torch.manual_seed(7)
assert torch.equal(torch.rand(4, device=name), first)
runtime.synchronize()
stream = runtime.current_stream()
with runtime.stream(stream):
    torch.ones(2, device=name)
with torch.autocast(name, torch.bfloat16):
    a = torch.ones(2, 2, device=name)
    assert (a @ a).dtype == torch.bfloat16 and a.exp().dtype == torch.float32
    assert a.bfloat16().sum().dtype == torch.float32
    layer, x = nn.MultiheadAttention(8, 2).to(name), torch.ones(2, 3, 8, device=name)
    weights = layer.in_proj_weight, layer.in_proj_bias, layer.out_proj.weight, layer.out_proj.bias
    with torch.no_grad():
        attended, _ = torch._native_multi_head_attention(x, x, x, 8, 2, *weights)
    assert attended.dtype == torch.bfloat16
try:
    torch.ones(2, device=f"{name}:2")
except (IndexError, RuntimeError) as error:
    print(error)
print("done")
"""


@few_kinds
def test_runtime_generator_and_autocast(name: str, memory: str) -> None:
    found = run(RUNTIME, name, memory, devices=2)
    assert "there is no device" in found
    assert "done" in found


BAD = """
for given in (("cuda", "host", 1), ("ipu2", "host", 1), ("hpu", "disk", 1), ("hpu", "cpu:9", 1), ("hpu", "host", 0),
              ("other", "host", 1), ("ipu", "host", 3)):
    try:
        xpurt.prototype_device(*given)
    except ValueError as error:
        print(given[0], "->", error)
assert xpurt.prototype_device("ipu") is made
try:
    xpurt.prototype_device("yours")
except ValueError as error:
    print(error)
"""


def test_bad_input_says_what_is_possible() -> None:
    found = run(BAD, "ipu", "host")
    assert 'cuda -> the device type "cuda" can\'t be prototyped' in found
    assert "ipu2 -> PyTorch takes lower-case letters" in found
    assert (
        'hpu -> memory is "host", "xpu" or a SYCL filter string; found \'disk\': "disk" is '
        "not a SYCL filter string"
    ) in found
    assert "found 'cpu:9': there is no SYCL device \"cpu:9\"" in found
    assert "devices is a number from 1 to 64; found 0" in found
    assert "ipu -> ipu has 1 devices with memory='host'" in found
    assert 'PrivateUse1 is named "other" in this process' in found


REDUCED = """
x, y = torch.eye(3) * 2, torch.arange(12.0).reshape(3, 4)
for reduce in ("sum", "mean", "amax", "amin"):
    for wanted in ((True, True), (True, False), (False, True)):
        grads = []
        for device in ("cpu", name):
            a = x.to_sparse_csr().to(device).requires_grad_(wanted[0])
            b = y.to(device, copy=True).requires_grad_(wanted[1])
            # Tensors that an op has made, too.
            a_used, b_used = (a, b * 1 if wanted[1] else b)
            torch.sparse.mm(a_used, b_used, reduce).square().sum().backward()
            grads.append([None if each.grad is None else each.grad.cpu() for each in (a, b)])
        for found, want in zip(*grads):
            assert (found is None) == (want is None)
            if want is not None:
                torch.testing.assert_close(found.to_dense(), want.to_dense())
print("reduced")
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("memory", ["host", "xpu", "gpu"])
def test_reduced_sparse_products_have_gradients(memory: str) -> None:
    assert "reduced" in run(REDUCED, "mydevice", memory)
