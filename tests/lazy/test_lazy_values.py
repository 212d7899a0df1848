"""What is computed later is what the program called. A process has one lazy backend."""

import pytest
from own_process import compiling_output as output

START = """
import logging, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt.lazy
from torch import nn
F = nn.functional
"""

DRAWS = (
    START
    + """
xpurt.lazy.init(compile={compile!r})

def drawn(device):
    torch.manual_seed(5)
    x = torch.ones(200, device=device)
    last = F.dropout(x, 0.3)
    unused = torch.rand(7, device=device)
    first = torch.rand_like(x)
    state = torch.xpu.get_rng_state()
    filled = torch.empty(50, device=device).normal_(1.0, 2.0)
    torch.xpu.set_rng_state(state)
    again = torch.normal(1.0, 2.0, (50,), device=device)
    given = torch.Generator("xpu")
    given.manual_seed(9)
    chosen = torch.multinomial(x, 4, generator=given)
    torch.manual_seed(1)
    whole = torch.randint_like(x, 9)
    seen = [first.cpu(), filled.cpu(), again.cpu()]  # not in the order of the program
    return [*seen, last.cpu(), chosen.cpu(), whole.cpu(), (last * first + whole).cpu()]

for lazy, eager in zip(drawn("lazy"), drawn("xpu"), strict=True):
    torch.testing.assert_close(lazy, eager, rtol=1e-6, atol=0)

x = torch.ones(1000, device="lazy")
kept = F.dropout(x)
total = kept.sum()  # in a graph of its own, which needs the draws once more
assert kept.cpu().sum() == total.cpu()
print("the same", [each.error for each in xpurt.lazy.compilations() if each.error])
"""
)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("compile", ["never", "always"])
def test_random_ops_draw_the_numbers_of_their_call(compile: str) -> None:
    assert output(DRAWS.format(compile=compile)) == "the same []"


OWN_OPS = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.ones(2, 2, device="lazy")

@torch.library.custom_op("lazy_test::half", mutates_args=())
def half(x: torch.Tensor) -> torch.Tensor:
    made = x.clone()
    made[0].mul_(0.5)  # a view of new memory
    return made

print(half(x).tolist(), torch._C._lazy._counter_value("xpurt::run_now"))
half.register_fake(torch.empty_like)
print(half(x + 1).tolist(), torch._C._lazy._counter_value("xpurt::run_now"))
"""
)


def test_an_op_of_a_program_may_write_to_a_view() -> None:
    assert output(OWN_OPS).splitlines() == [
        "[[0.5, 0.5], [1.0, 1.0]] 1",
        "[[1.0, 1.0], [2.0, 2.0]] 1",  # a node, as its sizes are known
    ]


BOUNDS = (
    START
    + """
xpurt.lazy.init(compile="never")
x, bound = torch.tensor([-5.0, 0.0, 5.0]), torch.tensor([-1.0, 1.0, 7.0])
for bounds in ((bound, None), (None, bound), (bound, bound + 1)):
    lazy = [None if each is None else each.to("lazy") for each in bounds]
    assert torch.clamp(x.to("lazy"), *lazy).cpu().equal(torch.clamp(x, *bounds)), bounds
print("the same")
"""
)


def test_which_optional_tensors_are_given_is_a_part_of_a_graph() -> None:
    assert output(BOUNDS) == "the same"


COMPOSITE = (
    START
    + """
xpurt.lazy.init(compile="never")
torch.manual_seed(0)
x = torch.randn(4, 4)
x = x @ x.t() + torch.eye(4)
for op in (torch.std, torch.logdet, torch.pinverse, lambda x: torch.svd(x)[1]):
    lazy, cpu = x.to("lazy").requires_grad_(), x.clone().requires_grad_()
    op(lazy).sum().backward()
    op(cpu).sum().backward()
    torch.testing.assert_close(lazy.grad.cpu(), cpu.grad, rtol=1e-3, atol=1e-4)
assert torch.std(x.to("lazy"), dim=None, keepdim=True).shape == (1, 1)
rank = torch.zeros((), dtype=torch.int64, device="lazy")
torch.linalg.matrix_rank(x.to("lazy"), out=rank)
assert rank.item() == 4
y = x.to("lazy")
y.polygamma_(1)
torch.testing.assert_close(y.cpu(), x.polygamma(1))
print("the same")
"""
)


def test_ops_made_of_others_have_gradients_and_write_to_out() -> None:
    assert output(COMPOSITE) == "the same"


WRONG = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.ones(3, 4, 5, device="lazy")
i = torch.tensor([2, 1, 0]).to("lazy")
calls = {
    "trace": lambda: x.trace(),
    "embedding": lambda: F.embedding(torch.ones(2, 2, dtype=torch.int64, device="lazy"), x),
    "layer norm": lambda: torch.native_layer_norm(x, [], None, None, 1e-5),
    "gather": lambda: x.gather(1, torch.ones(2, dtype=torch.int64, device="lazy")),
    "sparse": lambda: x.to_sparse(),
    "complex": lambda: torch.complex(x, x.int()),
    "out= of another dtype": lambda: torch.amax(x, 0, out=x[0].double()),
    "complex out=": lambda: torch.complex(x, x, out=torch.complex(x, x).to(torch.complex128)),
    "out= without memory of its own": lambda: torch.take(x, i, out=x[0, 0, :1].clone().expand(3)),
    "out= that is read": lambda: torch.take(x, i, out=x.view(60)[:]),
}
for name, call in calls.items():
    try:
        call()
        print(name, "gave a result")
    except (RuntimeError, IndexError, NotImplementedError) as error:
        print(name, "raised", str(error)[:200])
"""
)


def test_wrong_arguments_raise_at_the_call() -> None:
    found = output(WRONG).splitlines()
    assert [each for each in found if " raised " not in each] == []
    assert 'x.to("xpu")' in next(each for each in found if each.startswith("sparse"))


GROUP_NORM = """
xpurt.lazy.init(compile=compile)
for batch in batches:
    found = []
    for device in ("xpu", "lazy"):
        torch.manual_seed(0)
        x = torch.randn(batch, 6, 4).to(device).requires_grad_()
        net = torch.nn.GroupNorm(3, 6).to(device)
        y = torch.ops.aten.native_group_norm(
            x, net.weight, net.bias, batch, 6, 4, 3, 1e-5)[0]
        if batch:  # nn.GroupNorm refuses an empty batch
            y = y + net(x)
        (first,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        (y.sum() + first.square().sum()).backward()
        found.append([each.grad.cpu() for each in (x, net.weight, net.bias)])
    for one, other in zip(*found):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)
print("the same")
"""


@pytest.mark.rest
@pytest.mark.parametrize(
    ("compile", "batches"),
    [
        ("never", (0, 2)),
        ("always", (0,)),
        # The second derivative is a large graph.
        pytest.param("always", (2,), marks=pytest.mark.slow),
    ],
)
def test_group_norm_has_gradients_also_of_an_empty_batch(
    compile: str, batches: tuple[int, ...]
) -> None:
    code = f"{START}\ncompile, batches = {compile!r}, {batches!r}\n{GROUP_NORM}"
    found = output(code, timeout=120)
    assert found == "the same"
