"""An op that fails halfway: its operands, the memory, and the op after it.

What fails before it starts: tests/bad_input/test_errors_in_ops.py.
"""

import gc
from collections.abc import Callable, Iterator

import pytest
import torch

from xpurt import _C
from xpurt.testing.oracle import outcome

pytestmark = pytest.mark.usefixtures("policy")


@pytest.fixture(scope="session")
def ops() -> Iterator[object]:
    """Ops whose CPU kernels fail in the midst of their work."""

    def write_and_fail(x: torch.Tensor) -> None:
        x.add_(100)
        raise ValueError("halfway")

    def keep_and_fail(x: torch.Tensor) -> torch.Tensor:
        made = [torch.ones(1000) + x.sum() for _ in range(10)]
        raise ValueError(f"with {len(made)} results in hand")

    def resize_and_fail(x: torch.Tensor, out: torch.Tensor) -> None:
        out.resize_(100).fill_(1)
        raise ValueError("after a resize")

    library = torch.library.Library("xpurt_test_failing", "DEF")
    library.define("write_and_fail(Tensor(a!) x) -> ()")
    library.define("keep_and_fail(Tensor x) -> Tensor")
    library.define("resize_and_fail(Tensor x, *, Tensor(a!) out) -> ()")
    for kernel in (write_and_fail, keep_and_fail, resize_and_fail):
        library.impl(kernel.__name__, kernel, "CPU")
    yield torch.ops.xpurt_test_failing
    del library


Call = Callable[[torch.Tensor], object]


def far(x: torch.Tensor) -> torch.Tensor:
    """Indices, the last of which is out of range."""
    return torch.tensor([0, 1, 99], device=x.device)


FAILING: dict[str, Call] = {
    "index_put_": lambda x: x.index_put_((far(x),), x[0, 0]),
    "index_fill_": lambda x: x.index_fill_(0, far(x), 7),
    "index_add_": lambda x: x.index_add_(0, far(x), x[:3].clone()),
    "scatter_": lambda x: x.scatter_(0, far(x)[:, None], 7.0),
    "put_": lambda x: x.put_(far(x), x[0, :3].clone()),
    "take": lambda x: x.take(far(x)),
    "index_select into out": lambda x: torch.index_select(
        x, 0, far(x), out=torch.zeros(3, 4, device=x.device)
    ),
    "foreach of two shapes": lambda x: torch._foreach_add_(
        [x[0], x[1]], [x[2], x[:2, :3]]
    ),
    "cat of two shapes": lambda x: torch.cat((x, x[:, :2])),
    "stack of two shapes": lambda x: torch.stack([x[0], x[1], x[2, :2]]),
    "cholesky": lambda x: torch.linalg.cholesky(x - 100, out=x.new_empty(4, 4)),
    "masked_scatter_": lambda x: x.masked_scatter_(x >= 0, x[0].clone()),
    "bincount": lambda x: (x - 5).flatten().long().bincount(),
    "embedding": lambda x: torch.embedding(x, far(x)),
    "multinomial": lambda x: torch.multinomial(x - 100, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(-far(x)[:1] - 1),
}


def failure(call: Call, x: torch.Tensor) -> tuple[Exception | None, bool]:
    """The error, and whether it came with a wait: a kernel finds wrong indices while it
    runs, and writes at the right ones."""
    _, found = outcome(call, x)
    if found is not None:
        return found, False
    return outcome(torch.xpu.synchronize)[1], True


def check(call: Call, xpu: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Fails on both, leaks nothing; what both are left with."""
    cpu = torch.arange(16.0).reshape(4, 4)
    x = cpu.to(xpu)
    torch.xpu.synchronize()
    before = _C.live_memory()
    _, error = outcome(call, cpu)
    found, late = failure(call, x)
    assert error is not None
    assert type(found) is (IndexError if late else type(error))
    del error, found
    torch.xpu.synchronize()
    if _C.live_memory() != before:  # a collection takes longer than the op
        gc.collect()
    assert _C.live_memory() <= before
    left = x.cpu()
    assert torch.equal((x + 1).cpu(), left + 1)
    assert torch.equal((x[:1] @ x).cpu(), left[:1] @ left)
    return (cpu if late else left), cpu


@pytest.mark.parametrize("name", FAILING)
def test_operands_are_as_before_or_as_on_the_cpu(name: str, xpu: torch.device) -> None:
    left, cpu = check(FAILING[name], xpu)
    untouched = torch.arange(16.0).reshape(4, 4)
    assert torch.equal(left, untouched) or torch.equal(left, cpu)


def test_a_kernel_that_fails_after_a_write(ops: object, xpu: torch.device) -> None:
    left, cpu = check(lambda x: ops.write_and_fail(x[1:]), xpu)
    assert cpu[1, 0] == 104
    untouched = torch.arange(16.0).reshape(4, 4)
    assert torch.equal(left, untouched) or torch.equal(left, cpu)


def test_a_kernel_that_fails_with_results(ops: object, xpu: torch.device) -> None:
    left, cpu = check(lambda x: ops.keep_and_fail(x), xpu)
    assert torch.equal(left, cpu)


def test_a_kernel_that_fails_after_a_resize(ops: object, xpu: torch.device) -> None:
    out = torch.zeros(3, device=xpu)
    with pytest.raises(ValueError, match="after a resize"):
        ops.resize_and_fail(torch.ones(2, device=xpu), out=out)
    # The storage is large enough for the shape.
    assert out.untyped_storage().nbytes() >= 4 * out.numel()
    assert out.tolist() in ([0] * 3, [1] * out.numel())
    assert (out + 1).sum().item() in (3, 200)


def test_an_error_in_a_backward(xpu: torch.device) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: object, grad: torch.Tensor) -> torch.Tensor:
            grad.clone().add_(1)
            raise ValueError("in a backward")

    gc.collect()
    before = _C.live_memory()
    x = torch.ones(3, device=xpu, requires_grad=True)
    with pytest.raises(ValueError, match="in a backward") as caught:
        Fails.apply(x.exp()).sum().backward()
    assert x.grad is None
    x.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 1, 1]
    del x, caught
    gc.collect()
    _C.drain_autograd_threads()
    assert _C.live_memory() == before


def test_many_failures_leave_no_memory(ops: object, xpu: torch.device) -> None:
    x = torch.ones(1000, device=xpu)
    torch.xpu.synchronize()
    gc.collect()
    before = _C.live_memory(), torch.xpu.memory_allocated()
    for _ in range(50):
        with pytest.raises(ValueError, match="in hand"):
            ops.keep_and_fail(x)
        with pytest.raises(RuntimeError, match=r"size|shape"):
            torch.add(x, x[:7], out=x.new_empty(0))
    gc.collect()
    torch.xpu.synchronize()
    assert (_C.live_memory(), torch.xpu.memory_allocated()) == before
