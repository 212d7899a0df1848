"""Traced graphs are compiled, where that is faster, and compute the same.

Each program has a process of its own: a process has one lazy backend.
"""

import pytest
from lazy_mappings import with_gpu
from own_process import compiling_output as output

START = """
import logging, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt.lazy
from torch import nn
"""


TRAINING = (
    START
    + """
def losses(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 5))
    net.to(device)
    x, y = torch.randn(16, 20).to(device), torch.randint(5, (16,)).to(device)
    steps = torch.optim.Adam(net.parameters(), 0.01)
    found = []
    for _ in range(6):
        steps.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        steps.step()
        if device == "lazy":
            xpurt.lazy.step()
        found.append(loss.detach())
    return torch.stack(found).cpu()

xpurt.lazy.init(compile="always")
torch.testing.assert_close(losses("lazy"), losses("cpu"), rtol=1e-4, atol=1e-5)
found = xpurt.lazy.compilations()
print("graphs", len(found), "errors", [each.error for each in found if each.error])
"""
)


@pytest.mark.rest
@pytest.mark.parametrize(
    "mapping",
    [
        "CPU",
        pytest.param("GPU", marks=pytest.mark.slow),
        pytest.param("AUTO", marks=pytest.mark.slow),
    ],
)
def test_training_by_compiled_graphs_has_the_losses_of_the_cpu(mapping: str) -> None:
    found = output(TRAINING, XPURT_MAPPING=with_gpu(mapping))
    graphs, errors = found.split("errors")
    assert errors.strip() == "[]"
    # The first steps have no state of the optimizer yet. A later step needs no new graph,
    # although Adam's numbers change.
    assert int(graphs.split()[1]) <= 5


RANDOM = (
    START
    + """
def drawn(device):
    torch.xpu.manual_seed(3)
    x = torch.ones(1000, device=device)
    draws = [
        lambda: nn.functional.dropout(x, 0.4),
        lambda: torch.rand_like(x),
        lambda: torch.randn(100, device=device),
        lambda: torch.randint(9, (50,), device=device),
        lambda: torch.randperm(20, device=device),
        lambda: torch.bernoulli(x / 2),
    ]
    return [draw().cpu() for draw in draws]

xpurt.lazy.init(compile={compile!r})
for lazy, eager in zip(drawn("lazy"), drawn("xpu")):
    assert torch.equal(lazy, eager)
print("the same")
"""
)


# Of those in compiled graphs, test_lazy_values.py draws some by default.
@pytest.mark.parametrize(
    "compile", ["never", pytest.param("always", marks=pytest.mark.slow)]
)
def test_random_numbers_are_those_of_eager_xpu(compile: str) -> None:
    assert "the same" in output(RANDOM.format(compile=compile))


NUMBERS = (
    START
    + """
xpurt.lazy.init(compile="always")
x = torch.linspace(-2, 2, 50)
on_lazy = x.to("lazy")
def program(x, slope, factor):  # the slope is a number, and can't be a tensor
    return torch.nn.functional.leaky_relu(x, slope).clamp(-slope, 0.9) * factor
for slope in (0.5, 0.25, 0.75):
    for factor in (3.0, 0.125):
        found = program(on_lazy, slope, factor).cpu()
        torch.testing.assert_close(found, program(x, slope, factor))
assert any(each.constants for each in xpurt.lazy.compilations())
ints = torch.arange(10)
torch.testing.assert_close((ints.to("lazy") * 2.5 + 3).cpu(), ints * 2.5 + 3)
torch.testing.assert_close((ints.to("lazy") * 7).cpu(), ints * 7)
# Lazy tensors are in the order of their dimensions, whatever compiled code makes of them.
turned = (on_lazy.view(5, 10) * 2).t().view(torch.int16).cpu()
assert torch.equal(turned, (x.view(5, 10) * 2).t().contiguous().view(torch.int16))
print("the same", [each.constants for each in xpurt.lazy.compilations()])
"""
)


@pytest.mark.rest
def test_numbers_of_a_compiled_graph_may_change() -> None:
    assert "the same" in output(NUMBERS)


NUMBERS_BESIDE = (
    START
    + """
import warnings
warnings.filterwarnings("ignore", "Torchinductor does not support")  # complex numbers
xpurt.lazy.init(compile={compile!r})
whole, floats, half = torch.arange(9), torch.arange(9.0), torch.arange(9).half()
exact = torch.tensor(0.1, dtype=torch.float64)  # no number of Python
cases = [
    lambda at: whole.to(at) * 0.1,
    lambda at: (whole.to(at) * 0.1).view(torch.int32),  # of the memory, too
    lambda at: (whole.to(at) ** 0.5).view(torch.int32),
    lambda at: 1.5 - whole.to(at),
    lambda at: whole.to(at) / 0.3,
    lambda at: whole.to(at) * 2j,
    lambda at: torch.view_as_real(floats.to(at) * 2j),
    lambda at: torch.view_as_real((whole.to(at) + 1) ** 2j),
    lambda at: whole.to(at) * exact,
    lambda at: whole.to(at) * exact.to(at),
    lambda at: floats.to(at) + exact,
    lambda at: half.to(at) * 0.1,
    lambda at: (whole.to(at) > 3) * 3,
    lambda at: torch.where(whole.to(at) > 3, 0.1, whole.to(at)),
    lambda at: torch.xlogy(whole.to(at), 2.5),
    lambda at: torch.fmod(whole.to(at), 2.5),
    lambda at: torch.copysign(whole.to(at), -2.5),
]
for place, case in enumerate(cases):
    found, expected = case("lazy"), case("cpu")
    assert found.dtype == expected.dtype, (place, found.dtype)
    xpurt.lazy.step()
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-6, atol=1e-6, msg=str(place))
print([each.error for each in xpurt.lazy.compilations() if each.error])
"""
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("compile", ["never", "always"])
def test_a_number_beside_a_tensor_has_the_type_that_eager_mode_gives_it(
    compile: str,
) -> None:
    assert output(NUMBERS_BESIDE.format(compile=compile)) == "[]"


BY_TENSORS = (
    START
    + """
from xpurt.lazy.traced_graph import BY_TENSORS
xpurt.lazy.init(compile="always")
torch.manual_seed(0)
given = torch.rand(3, 5) + 0.5
cases = {
    "add": lambda x, y, z, n: [x + n, torch.add(x, y, alpha=n), y.add(n, alpha=2)],
    "sub": lambda x, y, z, n: [x - n, torch.sub(x, y, alpha=n), y.sub(n, alpha=2)],
    "mul": lambda x, y, z, n: [x * n],
    "div": lambda x, y, z, n: [x / n],
    "pow": lambda x, y, z, n: [x ** n],
    "addcmul": lambda x, y, z, n: [torch.addcmul(x, y, z, value=n)],
    "addcdiv": lambda x, y, z, n: [torch.addcdiv(x, y, z, value=n)],
    "eq": lambda x, y, z, n: [x == n], "ne": lambda x, y, z, n: [x != n],
    "lt": lambda x, y, z, n: [x < n], "le": lambda x, y, z, n: [x <= n],
    "gt": lambda x, y, z, n: [x > n], "ge": lambda x, y, z, n: [x >= n],
}
assert set(cases) == {op._overloadpacket.__name__ for op in BY_TENSORS}
def results(n, device):
    x, y, z = given.to(device)
    return [each for case in cases.values() for each in case(x, y, z, n)] + [
        x.sum(dtype=torch.float64), x.to(torch.int64), torch.zeros_like(x, dtype=torch.half)]
for n in (0.7, given[0, 2].item(), 1.3):
    found = results(n, "lazy")
    xpurt.lazy.step()
    for place, (mine, theirs) in enumerate(zip(found, results(n, "cpu"), strict=True)):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-6, atol=1e-6, msg=str((n, place)))
print([(each.error, each.constants) for each in xpurt.lazy.compilations()])
"""
)


def test_ops_of_numbers_take_tensors_in_compiled_graphs() -> None:
    assert output(BY_TENSORS) == "[('', {})]"  # one graph for all numbers


AUTO = (
    START
    + """
xpurt.lazy.init()
x = torch.rand(1 << 21).to("lazy")
def chain(x):
    for _ in range(10):
        x = torch.sin(x) * 1.1 + 0.2
    return x
want = chain(x.cpu())
for _ in range(400):
    y = chain(x)
    xpurt.lazy.step(wait=True)
    if xpurt.lazy.compilations():
        break
assert xpurt.lazy.compilations(), "the time of 400 runs did not pay for a compilation"
for _ in range(20):
    y = chain(x)
    xpurt.lazy.step()
torch.testing.assert_close(y.cpu(), want, rtol=1e-4, atol=1e-4)
(row,) = xpurt.lazy.compilations()
print(row.reason if not row.error else row)
"""
)


@pytest.mark.rest
def test_a_graph_is_compiled_once_its_runs_paid_for_it() -> None:
    runs, _, rest = output(AUTO).partition(" runs op by op of ")
    ms = float(rest.split()[0])
    assert ms * int(runs.replace(",", "")) > 1000


POOLED = (
    START
    + """
import re
xpurt.lazy.init(compile="always")
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 2, 3), nn.MaxPool2d(2))
x = torch.randn(2, 2, 14, 14)
def gradients(device):
    net.to(device).zero_grad()
    net(x.to(device)).square().sum().backward()
    if device == "lazy":
        xpurt.lazy.step()
    return [each.grad.cpu() for each in net.parameters()]
want = gradients("cpu")
with torch.autocast("cpu"):  # which the code of the host is not in
    found = gradients("lazy")
for pair in zip(found, want):
    torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-5)
(row,) = [each for each in xpurt.lazy.compilations() if "convolution_backward" in each.text]
assert not row.error, row
call = row.code[row.code.index("def call("):]
print(len(re.findall(r"= torch.ops.aten.max_pool2d_with_indices.default\\(", call)),
      "(2, 3, 12, 12), (432, 1, 36, 3)" in call)
"""
)


@pytest.mark.rest
def test_pooling_is_called_and_convolutions_keep_their_layout() -> None:
    assert output(POOLED) == "2 False"


FAILURE = (
    START
    + """
xpurt.lazy.init(compile="always")
xpurt._lazy.set_lazy_compiler(lambda *_: (_ for _ in ()).throw(KeyError("from the compiler")), True)
x = torch.ones(3, device="lazy")
for _ in range(2):  # the lazy core raises it once more, when the device is used next
    try:
        (x + 1).cpu()
    except KeyError as error:
        print("raised", error)
    xpurt.lazy.init(compile="never")
print((x + 2).cpu().tolist())
"""
)


def test_an_exception_of_the_compiler_keeps_its_type_and_the_process() -> None:
    found = output(FAILURE)
    assert "raised 'from the compiler'" in found
    assert "[3.0, 3.0, 3.0]" in found
