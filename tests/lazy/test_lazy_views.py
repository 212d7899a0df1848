"""Views of lazy tensors and writes to them, which are traced without PyTorch's meta
functions. A process has one lazy backend."""

import pytest
from own_process import compiling_output as output

START = """
import logging, sys, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt.lazy
F = torch.nn.functional
"""

PROGRAMS = (
    START
    + """
xpurt.lazy.init(compile={compile!r})

def writes_to_views(x):
    y = x.view(6, 4)
    y[1].mul_(2)
    y.t()[0].add_(1)
    x.permute(2, 0, 1)[1:, :1].sub_(3)
    x.unsqueeze(0).transpose(1, 3).div_(2)
    return x + y.view(2, 3, 4)

def writes_to_aliases(x):
    y = x.detach()
    y.add_(1)
    first = x[0]
    first.mul_(3)
    return x + y, first

def writes_to_windows(x):
    # Elements that are in no window stay, and those in two are written once.
    flat = x.view(24)
    flat.unfold(0, 2, 3).mul_(2)
    x.view(4, 6).unfold(0, 2, 1)[0].add_(10)
    x.view(6, 4).unfold(1, 3, 2).sub_(1)
    x[0].expand(2, 3, 4)[1].add_(5)
    return x

def last_views(x):
    x = x.view(6, 4).t()  # its base is gone
    x.add_(1)
    x.lerp_(torch.ones_like(x), 0.25)
    return x, x.contiguous().view(-1)

def memory(x):
    turned = x[0].t().clone().contiguous()
    put = turned.as_strided_scatter(torch.zeros(3, device=x.device), (3,), (2,), 1)
    bytes_of = x[1].t().contiguous().view(torch.int32)
    return turned.view(2, 6).as_strided((5,), (2,)), put, bytes_of

def smaller(x):
    y = x.clone()
    y.resize_(3, 5).add_(1)
    z = torch.ones(0, device=x.device)
    z.resize_(1, 0, 3)
    return y * 2, z

def new_tensors(x):
    y = torch.arange(24, device=x.device, dtype=x.dtype)
    y.view(2, 3, 4)[1].zero_()
    z = torch.randperm(1, device=x.device)
    z.view(1)[0].add_(7)
    return y, z

def writes_at_a_view(x):
    at = torch.zeros(2, dtype=torch.int64, device=x.device)
    view = at.view(2)
    at.add_(1)
    return x.index_put_((view,), torch.full((), 9.0, device=x.device))

def batch_of_a_view(x):
    return F.batch_norm(x.view(1, 6, 4), None, None, training=True)

def gradients(x):
    x = x.clone().requires_grad_()
    weight = torch.full((5, 4), 0.5, device=x.device, requires_grad=True)
    F.linear(x, weight).square().sum().backward()
    with torch.no_grad():
        weight.sub_(weight.grad, alpha=0.01)
    return x.grad, weight.grad, weight.detach()

values = torch.linspace(-1, 2, 24).view(2, 3, 4)
for program in (writes_to_views, writes_to_aliases, writes_to_windows, last_views, memory, smaller, new_tensors,
                writes_at_a_view, batch_of_a_view, gradients):
    on_cpu, lazy = program(values.clone()), program(values.to("lazy"))
    if isinstance(lazy, torch.Tensor):
        on_cpu, lazy = (on_cpu,), (lazy,)
    for expected, found in zip(on_cpu, lazy, strict=True):
        torch.testing.assert_close(found.cpu(), expected, msg=lambda m: program.__name__ + m)
print("the same", [each.error for each in xpurt.lazy.compilations() if each.error])
"""
)


@pytest.mark.parametrize(
    "compile", ["never", pytest.param("always", marks=pytest.mark.slow)]
)
def test_views_and_writes_have_the_values_of_the_cpu(compile: str) -> None:
    assert output(PROGRAMS.format(compile=compile)) == "the same []"


ERRORS = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.rand(2, 3, device="lazy")
for wrong in (
    lambda: x.add_(torch.rand(4, 2, 3, device="lazy")),
    lambda: torch.ones(3, dtype=torch.int64, device="lazy").mul_(1.5),
    lambda: x.view(4, 4),
    lambda: x.select(2, 0),
    lambda: x.t().as_strided((2,), (1,)),
    lambda: x[1].as_strided((2,), (1,)),
):
    try:
        wrong()
        print("no error")
    except (RuntimeError, IndexError) as error:
        print(type(error).__name__, str(error).split(":")[0].splitlines()[0])
"""
)


def test_wrong_writes_and_views_raise_at_the_call() -> None:
    assert output(ERRORS).splitlines() == [
        "RuntimeError output with shape [2, 3] doesn't match the broadcast shape [4, 2, 3]",
        "RuntimeError result type Float can't be cast to the desired output type Long",
        "RuntimeError shape '[4, 4]' is invalid for input of size 6",
        "IndexError Dimension out of range (expected to be in range of [-2, 1], but got 2)",
        "NotImplementedError as_strided of a view of a lazy tensor",
        "NotImplementedError as_strided of a view of a lazy tensor",
    ]


WITHOUT_PYTHON = (
    START
    + """
xpurt.lazy.init(compile="never")
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(36, 8), torch.nn.LayerNorm(8), torch.nn.GELU(),
    torch.nn.Dropout(), torch.nn.Linear(8, 3),
).to("lazy")
images, labels = torch.rand(2, 1, 8, 8).to("lazy"), torch.tensor([0, 2]).to("lazy")

def train(optimizer):
    optimizer.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()

called = set()
def see(frame, event, argument):
    file = frame.f_code.co_filename
    if event == "call" and any(each in file for each in ("_meta_reg", "_refs", "_decomp")):
        called.add(frame.f_code.co_name)

for kind in (torch.optim.SGD, torch.optim.AdamW):
    optimizer = kind(model.parameters(), 1e-3)
    for _ in range(2):
        train(optimizer)
        xpurt.lazy.step(wait=True)
    sys.setprofile(see)
    train(optimizer)
    sys.setprofile(None)
print("in Python:", sorted(called))
"""
)


def test_no_op_of_a_step_is_traced_in_python() -> None:
    """After the first step, whose shapes are new."""
    assert output(WITHOUT_PYTHON) == "in Python: []"
