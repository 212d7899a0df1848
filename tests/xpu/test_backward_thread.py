"""Backward in the thread that calls it, where one ordinal is behind the mapping."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from own_process import output
from torch import Tensor
from torch.autograd.variable import Variable
from torch.utils.checkpoint import checkpoint

from xpurt import _C
from xpurt.mapping import current_placement


def has_one_ordinal() -> bool:
    return len(current_placement().ordinals) == 1


class Seen:
    """What a hook saw, per call."""

    def __init__(self) -> None:
        self.threads: list[int] = []
        self.flags: list[bool] = []
        self.streams: list[int] = []

    def __call__(self, gradient: Tensor) -> None:
        self.threads.append(threading.get_ident())
        self.flags.append(torch.autograd.is_multithreading_enabled())
        self.streams.append(torch.xpu.current_stream().stream_id)

    @property
    def in_this_thread(self) -> bool:
        assert self.threads
        return set(self.threads) == {threading.get_ident()}


def graph(xpu: torch.device) -> tuple[Tensor, Tensor, Seen]:
    """A leaf, a loss that depends on it, and what a hook between them sees."""
    leaf = torch.ones(4, device=xpu, requires_grad=True)
    middle = leaf * 3
    seen = Seen()
    middle.register_hook(seen)
    return leaf, middle.sum(), seen


BACKWARDS: dict[str, Callable[[Tensor, Tensor], object]] = {
    "backward": lambda loss, leaf: loss.backward(),
    "grad": lambda loss, leaf: torch.autograd.grad(loss, leaf),
    "several roots": lambda loss, leaf: torch.autograd.backward((loss, leaf.sum())),
    "root on the CPU": lambda loss, leaf: loss.cpu().backward(),
}


@pytest.mark.parametrize("backward", BACKWARDS.values(), ids=list(BACKWARDS))
def test_one_ordinal_keeps_the_thread(
    backward: Callable[[Tensor, Tensor], object], xpu: torch.device
) -> None:
    leaf, loss, seen = graph(xpu)
    backward(loss, leaf)
    assert seen.in_this_thread == has_one_ordinal()


def test_the_flag_looks_as_ever(xpu: torch.device) -> None:
    leaf, loss, seen = graph(xpu)
    inner: list[bool] = []

    def change(gradient: Tensor) -> None:
        with torch.autograd.set_multithreading_enabled(False):
            inner.append(torch.autograd.is_multithreading_enabled())
        inner.append(torch.autograd.is_multithreading_enabled())

    leaf.register_hook(change)
    loss.backward()
    assert seen.flags == [True]
    assert inner == [False, True]
    assert torch.autograd.is_multithreading_enabled()


def test_a_program_that_clears_the_flag_sees_it_cleared(xpu: torch.device) -> None:
    _, loss, seen = graph(xpu)
    with torch.autograd.set_multithreading_enabled(False):
        loss.backward()
        assert not torch.autograd.is_multithreading_enabled()
    assert seen.flags == [False]
    assert seen.in_this_thread
    assert torch.autograd.is_multithreading_enabled()


def test_a_node_runs_on_the_stream_of_its_forward_op(xpu: torch.device) -> None:
    side, other = torch.xpu.Stream(), torch.xpu.Stream()
    with torch.xpu.stream(side):
        leaf, loss, seen = graph(xpu)
    with torch.xpu.stream(other):
        loss.backward()
        assert torch.xpu.current_stream() == other
    assert seen.streams == [side.stream_id]
    torch.xpu.synchronize()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [3.0] * 4


def test_an_error_of_a_hook_leaves_nothing_behind(xpu: torch.device) -> None:
    leaf, loss, _ = graph(xpu)

    def fail(gradient: Tensor) -> None:
        raise LookupError("of a hook")

    leaf.register_hook(fail)
    with pytest.raises(LookupError, match="of a hook"):
        loss.backward()
    assert torch.autograd.is_multithreading_enabled()
    assert not _C.show_multithreading(True)  # nothing is hidden any more
    _, again, seen = graph(xpu)
    again.backward()
    assert seen.in_this_thread == has_one_ordinal()


class _Nested(torch.autograd.Function):
    """A node whose backward calls backward, `depth` times deep."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, depth: int) -> Tensor:
        ctx.depth = depth
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        if ctx.depth > 0:
            with torch.enable_grad():
                inner = torch.ones_like(gradients[0], requires_grad=True)
                nested(inner, ctx.depth - 1).sum().backward()
                assert inner.grad is not None
        return gradients[0] * 2, None


def nested(x: Tensor, depth: int) -> Tensor:
    result: Tensor = _Nested.apply(x, depth)  # type: ignore[no-untyped-call]
    return result


# PyTorch computes a nested backward in another thread from a depth of 60 on.
@pytest.mark.parametrize("depth", [1, 70])
def test_backward_within_backward(depth: int, xpu: torch.device) -> None:
    leaf = torch.ones(2, device=xpu, requires_grad=True)
    nested(leaf, depth).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2.0, 2.0]
    assert torch.autograd.is_multithreading_enabled()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(use_reentrant: bool, xpu: torch.device) -> None:
    def net(x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x.exp() * x, 0.5).sin()

    found = []
    for form in (net, lambda x: checkpoint(net, x, use_reentrant=use_reentrant)):
        torch.manual_seed(1)
        leaf = torch.linspace(0, 1, 8).to(xpu).requires_grad_()
        form(leaf).sum().backward()
        assert leaf.grad is not None
        found.append(leaf.grad.cpu())
    torch.testing.assert_close(*found)


def test_anomaly_mode_names_the_forward_op(xpu: torch.device) -> None:
    leaf = torch.zeros(2, device=xpu, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
        pytest.raises(RuntimeError, match="nan values"),
        torch.autograd.detect_anomaly(),
    ):
        (leaf.sqrt() * 0).sum().backward()


def test_grad_mode_of_a_backward_that_makes_a_graph(xpu: torch.device) -> None:
    leaf = torch.full((2,), 2.0, device=xpu, requires_grad=True)
    (first,) = torch.autograd.grad((leaf**3).sum(), leaf, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), leaf)
    assert second.tolist() == [12.0, 12.0]
    assert torch.is_grad_enabled()


def test_threads_add_to_one_gradient(xpu: torch.device) -> None:
    leaf = torch.zeros(256, device=xpu, requires_grad=True)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(50):
                (leaf * 2).sum().backward()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert leaf.grad is not None
    assert leaf.grad.unique().tolist() == [300.0]


@pytest.fixture
def _engine_thread() -> Iterator[None]:
    _C.set_backward_in_calling_thread(False)
    yield
    _C.set_backward_in_calling_thread(True)


@pytest.mark.usefixtures("_engine_thread")
def test_it_can_be_off(xpu: torch.device) -> None:
    _, loss, seen = graph(xpu)
    loss.backward()
    assert not seen.in_this_thread
    assert seen.flags == [True]


PRINTS_THE_THREAD = """
import threading, torch, xpurt
x = torch.ones(2, device="xpu", requires_grad=True)
x.register_hook(lambda g: print(threading.current_thread() is threading.main_thread()))
(x * 2).sum().backward()
"""


@pytest.mark.parametrize(("value", "printed"), [("", "True"), ("device", "False")])
def test_the_variable(value: str, printed: str) -> None:
    assert output(PRINTS_THE_THREAD, XPURT_BACKWARD_THREAD=value) == printed


def test_uninstalling_restores_pytorch_s_engine() -> None:
    code = """
    import torch
    from torch.autograd.variable import Variable
    engine, read = type(Variable._execution_engine), torch._C._is_multithreading_enabled
    import xpurt
    from xpurt.xpu import uninstall
    assert type(Variable._execution_engine) is not engine
    uninstall()
    assert type(Variable._execution_engine) is engine
    assert torch._C._is_multithreading_enabled is read
    assert torch.autograd.is_multithreading_enabled is read
    """
    output(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")


def test_callbacks_are_queued_in_pytorch_s_engine(xpu: torch.device) -> None:
    leaf, loss, _ = graph(xpu)
    called: list[int] = []

    def queue(gradient: Tensor) -> None:
        engine: Any = Variable._execution_engine
        engine.queue_callback(lambda: called.append(1))

    leaf.register_hook(queue)
    loss.backward()
    assert called == [1]
