"""What a program does with lazy tensors besides computing. A process has one lazy backend."""

import pytest
from own_process import output, run

START = """
import copy, io, torch
import xpurt.lazy
from torch import nn
xpurt.lazy.init(compile="never")
"""

SAVED = (
    START
    + """
net = nn.Linear(3, 2).to("lazy")
file = io.BytesIO()
leaf = torch.ones(2, device="lazy", requires_grad=True)
torch.save({"net": net.state_dict(), "x": torch.arange(4, device="lazy"), "leaf": leaf}, file)
for where in (None, "cpu", "xpu"):
    file.seek(0)
    found = torch.load(file, map_location=where)
    assert found["x"].device.type == (where or "lazy"), found["x"].device
    assert found["x"].tolist() == [0, 1, 2, 3]
    assert found["leaf"].requires_grad and not found["x"].requires_grad
    torch.testing.assert_close(found["net"]["weight"].cpu(), net.weight.detach().cpu())
copied = copy.deepcopy(net)
assert copied.weight.device.type == "lazy" and isinstance(copied.weight, nn.Parameter)
print("saved")
"""
)


def test_save_load_and_copy() -> None:
    assert "saved" in output(SAVED)


AUTOCAST = (
    START
    + """
x, host = torch.randn(4, 4, device="lazy"), torch.randn(4, 4)
for dtype in (torch.bfloat16, torch.float16):
    with xpurt.lazy.autocast(dtype):
        made = nn.functional.linear(x, x, x[0])
        assert made.dtype == (x @ x).dtype == dtype, made.dtype
        assert made.softmax(-1).dtype == made.sum().dtype == torch.float32
        assert (made + made).dtype == made.relu().dtype == dtype
        assert (x + x).dtype == torch.float32
        assert (host @ host).dtype == torch.float32
        assert (x.double() @ x.double()).dtype == torch.float64
    assert (x @ x).dtype == torch.float32
print("cast")
"""
)


def test_autocast_chooses_the_types() -> None:
    assert "cast" in output(AUTOCAST)


RECURRENT = (
    START
    + """
for make in (nn.LSTM, nn.GRU, nn.RNN):
    torch.manual_seed(0)
    net = make(5, 7, num_layers=2, batch_first=True)
    x = torch.randn(3, 4, 5)
    want, _ = net(x)
    want.square().sum().backward()
    lazy = copy.deepcopy(net).to("lazy")
    lazy.zero_grad()
    found, _ = lazy(x.to("lazy"))
    found.square().sum().backward()
    torch.testing.assert_close(found.cpu(), want)
    for one, other in zip(lazy.parameters(), net.parameters()):
        torch.testing.assert_close(one.grad.cpu(), other.grad, rtol=1e-4, atol=1e-5)
assert not xpurt.lazy.fallbacks(), xpurt.lazy.fallbacks()
print("the same")
"""
)


def test_recurrent_networks_without_the_cpu() -> None:
    assert "the same" in output(RECURRENT)


LACKING = (
    START
    + """
x = torch.randn(4, 6)
mask = x > 0
lazy, lazy_mask = x.to("lazy"), mask.to("lazy")
out = torch.empty(0, device="lazy")
torch.where(lazy_mask, lazy, lazy * 2, out=out)
checks = {
    "lerp": (torch.lerp(lazy, lazy * 2, 0.3), torch.lerp(x, x * 2, 0.3)),
    "all": (lazy_mask.all(1), mask.all(1)),
    "isneginf": (torch.isneginf(lazy), torch.isneginf(x)),
    "where out": (out, torch.where(mask, x, x * 2)),
    "nonzero": (lazy_mask.nonzero(), mask.nonzero()),
    "index": (lazy[torch.tensor([2, 0]).to("lazy")], x[[2, 0]]),
    "masked": (lazy[lazy_mask], x[mask]),
    "split": (torch.cat(lazy.split([2, 4], 1)[::-1], 1), torch.cat(x.split([2, 4], 1)[::-1], 1)),
    "unique": (torch.unique(lazy_mask), torch.unique(mask)),
    "svd": (torch.linalg.svdvals(lazy), torch.linalg.svdvals(x)),
}
for name, (found, want) in checks.items():
    torch.testing.assert_close(found.cpu(), want, rtol=1e-4, atol=1e-4, msg=name)
print("fallbacks", xpurt.lazy.fallbacks())
"""
)


def test_ops_that_the_lazy_core_lacks_do_not_go_to_the_cpu() -> None:
    assert output(LACKING).strip() == "fallbacks {}"


TEXT = (
    START
    + """
x = torch.ones(3, device="lazy")
print(xpurt.lazy.text(x.sin() + 1))
try:
    xpurt.lazy.text(torch.ones(3))
except TypeError as error:
    print(error)
try:
    xpurt.lazy.init(compile="sometimes")
except ValueError as error:
    print(error)
"""
)


def test_text_has_the_nodes_and_the_graph_of_a_tensor() -> None:
    found = output(TEXT)
    assert "aten::sin" in found
    assert "graph(" in found
    assert 'takes a tensor of the device "lazy"; found one on cpu' in found
    assert "found 'sometimes'" in found


RUNNING_STATISTICS = (
    START
    + """
torch.manual_seed(0)
norm = nn.BatchNorm2d(3)
lazy = copy.deepcopy(norm).to("lazy")
for _ in range(3):
    x = torch.randn(4, 3, 5, 5)
    lazy(x.to("lazy")), norm(x)  # nobody looks at the result
for one, other in zip(lazy.buffers(), norm.buffers()):
    torch.testing.assert_close(one.cpu(), other)
lazy.eval(), norm.eval()
torch.testing.assert_close(lazy(x.to("lazy")).cpu(), norm(x))
print("the same")
"""
)


def test_batch_norm_updates_its_running_statistics() -> None:
    assert "the same" in output(RUNNING_STATISTICS)


ALIKE = (
    START
    + """
x, y = torch.tensor([3.0, 5.0]).to("lazy"), torch.tensor([4.0, 7.0]).to("lazy")
product = x * y
torch.testing.assert_close((x / product).cpu(), 1 / y.cpu())
torch.testing.assert_close((y / product).cpu(), 1 / x.cpu())
print("apart")
"""
)


def test_graphs_that_differ_in_the_places_of_data_are_apart() -> None:
    assert "apart" in output(ALIKE)


SECOND = """
import torch, xpurt.lazy
import torch._lazy.ts_backend
calls = [torch._lazy.ts_backend.init, xpurt.lazy.init]
if first == "xpu":
    calls.reverse()
calls[0]()
for _ in range(2):
    try:
        calls[1]()
    except RuntimeError as error:
        print(error)
x = torch.arange(3.0, device="lazy", requires_grad=True)
(x.sin() + 1).sum().backward()
torch.testing.assert_close(x.grad.cpu(), torch.arange(3.0).cos())
"""


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("first", "found"),
    [
        ("xpu", "xpu's, of xpurt.lazy.init()"),
        ("ts", "PyTorch's, of torch._lazy.ts_backend.init()"),
    ],
)
def test_a_second_backend_is_refused(first: str, found: str) -> None:
    ended = run(f"first = {first!r}\n{SECOND}")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count(f"found {found}") == 2, ended.stdout
    assert ended.stdout.lower().count("in a new process") == 2, ended.stdout
