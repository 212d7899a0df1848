"""Optimizers of lazy parameters call ops on lists, which are one node each.

Each program has a process of its own: a process has one lazy backend.
"""

from own_process import output

START = '''
import torch, xpurt.lazy
from torch import nn
from torch._lazy.metrics import counter_value

torch.set_num_threads(1)

def trained(optimizer, device, steps=4):
    """The parameters after steps of other learning rates, and how many graphs of the last
    one were new."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).double().to(device)
    x = torch.randn(4, 5, dtype=torch.float64).to(device)
    optimizer = optimizer(net.parameters())
    for step in range(steps):
        before = counter_value("UncachedCompile") or 0
        optimizer.zero_grad()
        net(x).square().mean().backward()
        for group in optimizer.param_groups:
            group["lr"] = 0.01 / (step + 1)
        optimizer.step()
        if device == "lazy":
            xpurt.lazy.step()
    found = (counter_value("UncachedCompile") or 0) - before
    return torch.cat([each.detach().flatten().cpu() for each in net.parameters()]), found
'''

TRAINED = (
    START
    + """
xpurt.lazy.init("never")
from xpurt.lazy.list_ops import OPTIMIZERS
optim = torch.optim
names = {each.__module__.rpartition(".")[2]: each for each in vars(optim).values()
         if isinstance(each, type) and each not in (optim.AdamW, optim.Optimizer)}
for name in OPTIMIZERS:
    make = names[name]
    options = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1} if name == "sgd" else {}
    found, graphs = trained(lambda p: make(p, lr=0.01, **options), "lazy")
    want, _ = trained(lambda p: make(p, lr=0.01, foreach=True, **options), "xpu")
    torch.testing.assert_close(found, want, rtol=1e-14, atol=1e-15, msg=lambda m: f"{name}: {m}")
    assert graphs == 0, (name, graphs)
texts = [each[1] for each in xpurt._lazy.lazy_graph_states()]
assert sum("aten::_foreach_add" in each for each in texts) >= len(OPTIMIZERS)
print(xpurt.lazy.fallbacks())
"""
)


def test_optimizers_train_as_on_xpu_and_a_learning_rate_needs_no_graph() -> None:
    assert output(TRAINED, timeout=120) == "{}"


COMPILED = (
    START
    + """
xpurt.lazy.init("always")

def computed(device, number):
    x = torch.arange(1.0, 4.0, dtype=torch.float64).to(device)
    a, b = x * 3, x * 5
    torch._foreach_add_([a, b], [x, x], alpha=number)
    torch._foreach_add_([a, b], 0.1)
    torch._foreach_addcdiv_([a, b], [x, x], [x, x], [number, 3.0])
    torch._foreach_lerp_([a], torch._foreach_sqrt([b]), 0.75)
    if device == "lazy":
        xpurt.lazy.step()
    return torch.stack((a.cpu(), b.cpu()))

for number in (0.25, 0.5):
    torch.testing.assert_close(computed("lazy", number), computed("xpu", number), rtol=1e-14, atol=0)
print([(each.constants, each.error, each.text.count("::_foreach_")) for each in xpurt.lazy.compilations()])
"""
)


def test_compiled_code_has_lists_tensor_by_tensor() -> None:
    """Other numbers need no other code, but for the weight of lerp, as outside of lists."""
    assert output(COMPILED, timeout=120) == "[({6: 0.75}, '', 5)]"


WRITES = (
    START
    + """
xpurt.lazy.init("never")
x, y = torch.zeros(2, 3).to("lazy"), torch.ones(3).to("lazy")
row = x[1]
torch._foreach_add_([row, y], [y + 1, y], alpha=2)
print(x.tolist(), row.tolist(), y.tolist())
number = torch.ones(()).to("lazy")
torch._foreach_sub_([y, number], 0.5)
print(y.tolist(), number.item())
for lists in (([y], [torch.ones(2, 3).to("lazy")]),
              ([torch.ones(3, dtype=torch.int64).to("lazy")], [y]),
              ([y], [y, y])):
    try:
        torch._foreach_mul_(*lists)
    except RuntimeError as error:
        print(str(error).partition("\\n")[0])
print(y.tolist())
"""
)


def test_writes_to_lists_reach_bases_of_views_and_are_checked() -> None:
    assert output(WRITES).splitlines() == [
        "[[0.0, 0.0, 0.0], [4.0, 4.0, 4.0]] [4.0, 4.0, 4.0] [3.0, 3.0, 3.0]",
        "[2.5, 2.5, 2.5] 0.5",
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
        "result type Float can't be cast to the desired output type Long",
        "Tensor lists must have the same number of tensors, got 1 and 2",
        "[2.5, 2.5, 2.5]",
    ]
