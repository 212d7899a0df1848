"""Linear layers of lazy programs are a node, and so are their derivatives: see Note [Linear
layers of lazy programs] in csrc/lazy/kernels/linear.h.

Each program has a process of its own: a process has one lazy backend.
"""

import pytest
from own_process import compiling_output, output

CALLS = """
import torch, xpurt.lazy
from torch import nn
from torch.nn import functional as F

def calls(*sizes, trained=(True, True, True), dtype=torch.float64):
    made = torch.Generator().manual_seed(1)
    draw = lambda size: torch.randn(size, dtype=dtype, generator=made)
    return [draw(size).requires_grad_(wanted) for size, wanted in zip(sizes, trained)]

CASES = {
    "vector": calls((4,), (3, 4), (3,)),
    "matrix": calls((2, 4), (3, 4), (3,)),
    "transposed": [calls((4, 2))[0].detach().t().requires_grad_(), *calls((3, 4), (3,))],
    "batches": calls((2, 5, 4), (3, 4), (3,)),
    "no bias": calls((2, 5, 4), (3, 4)),
    "no row": calls((0, 4), (3, 4), (3,)),
    "no column": calls((2, 0), (3, 0), (3,)),
    "frozen input": calls((2, 4), (3, 4), (3,), trained=(False, True, True)),
    "frozen weight": calls((2, 4), (3, 4), (3,), trained=(True, False, True)),
    "frozen bias": calls((2, 4), (3, 4), (3,), trained=(True, True, False)),
    "one weight": calls((2, 4), (4,)),
    "bias of rows": calls((2, 4), (3, 4), (2, 3)),
    "bias of one": calls((2, 4), (3, 4), (1,)),
    "complex": calls((2, 4), (3, 4), (3,), dtype=torch.complex128),
}

def results(case, device):
    given = [each.detach().to(device).requires_grad_(each.requires_grad) for each in case]
    out = F.linear(*given)
    loss = (out * out.conj()).real.sum()
    trained = [each for each in given if each.requires_grad]
    firsts = torch.autograd.grad(loss, trained, create_graph=True)
    # In the case "frozen weight" only the gradient of the input has one.
    total = sum((each * each.conj()).real.sum() for each in firsts)
    seconds = torch.autograd.grad(total, trained, allow_unused=True)
    return [each if each is None else each.detach().cpu() for each in (out, *firsts, *seconds)]
"""

SAME = (
    CALLS
    + """
xpurt.lazy.init("FORM")
for name in NAMES or CASES:
    case = CASES[name]
    want = results(case, "cpu")
    found = results(case, "lazy")
    assert len(found) == len(want)
    for a, b in zip(found, want):
        assert (a is None) == (b is None), name
        if b is not None:
            torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13, msg=lambda m: name + m)
print(xpurt.lazy.fallbacks())
"""
)


def test_layers_and_their_gradients_are_those_of_the_cpu() -> None:
    program = SAME.replace("FORM", "never").replace("NAMES", "None")
    assert output(program) == "{}"


@pytest.mark.rest
def test_compiled_layers_and_their_gradients_are_those_of_the_cpu() -> None:
    names = "['batches', 'frozen input']"
    program = SAME.replace("FORM", "always").replace("NAMES", names)
    assert compiling_output(program) == "{}"


NODES = (
    CALLS
    + """
xpurt.lazy.init("never")
given = [each.detach().to("lazy").requires_grad_() for each in CASES["batches"]]
out = F.linear(*given)
print(out.grad_fn.name())
out.sum().backward()
xpurt.lazy.step()
texts = [each[1] for each in xpurt._lazy.lazy_graph_states()]
print([name for name in ("aten::linear", "xpurt_lazy::linear_gradients", "aten::mm", "aten::t_copy")
       if any(name + "[" in each or name + "(" in each for each in texts)])
with torch.no_grad():
    print(F.linear(*given).shape)
try:
    F.linear(given[0], torch.randn(3, 4, dtype=torch.float64))
except RuntimeError as error:
    print("error")
try:
    F.linear(given[0], given[1][:, :3])
except RuntimeError as error:
    print("shapes" in str(error))
vmapped = torch.func.vmap(F.linear, (0, None, None))(*given)
print(torch.equal(vmapped.cpu(), out.cpu()))
"""
)


def test_a_layer_is_a_node_and_its_derivative_another_one() -> None:
    found = output(NODES).splitlines()
    assert found == [
        "LinearBackward0",
        "['aten::linear', 'xpurt_lazy::linear_gradients']",
        "torch.Size([2, 5, 3])",
        "error",
        "True",
        "True",
    ]
