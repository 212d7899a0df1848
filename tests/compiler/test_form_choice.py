"""Graphs that are compiled in two forms: which one runs."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from made_choices import made_choices
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.testing import assert_close

import xpurt
from xpurt import _C
from xpurt.compiler import form_choice, form_estimate, host_graph, second_form
from xpurt.compiler.form_choice import FormChoice
from xpurt.compiler.form_estimate import Estimate
from xpurt.mapping import FormTimes

pytestmark = pytest.mark.mappings("CPU")


@pytest.fixture(autouse=True)
def learning(xpu: torch.device) -> Iterator[None]:
    if not _C.host_reads(xpu.index):
        pytest.skip("the host cannot read the memory")
    before = _C.learning()
    _C.set_learning(True)
    yield
    _C.set_learning(before)


class Clock:
    """Forms that take the time that the test sets."""

    def __init__(self, **us: float) -> None:
        self.us = us
        self.now_us = 0.0
        self.calls: list[str] = []

    def start(self) -> Callable[[], float]:
        begin = self.now_us
        return lambda: self.now_us - begin

    def form(self, name: str) -> form_choice.Code:
        def run(inputs: list[Any]) -> Sequence[Any]:
            self.calls.append(name)
            self.now_us += self.us[name]
            inputs.clear()
            return [name]

        return run

    def choice(
        self, *, written: tuple[int, ...] = (), build_us: float = 50_000
    ) -> FormChoice:
        expected = Estimate(native_us=1_000, kernels_us=500)
        made = FormChoice(
            self.form("native"), self.form("kernels"), 0, expected,
            written=written, build_us=build_us,
        )  # fmt: skip
        made.clock = self.start
        return made


def test_kernels_that_are_faster_stay() -> None:
    clock = Clock(native=1_000, kernels=400)
    call = clock.choice()
    for _ in range(400):
        call([1.5])
    first = clock.calls.index("kernels")
    # What was lost before the first trial is about the price of building the kernels.
    assert 80 <= first <= 130
    assert clock.calls[first + 12 :].count("native") <= 6


def test_kernels_that_are_slower_cost_a_few_percent() -> None:
    clock = Clock(native=1_000, kernels=1_500)
    call = clock.choice()
    for _ in range(1_000):
        call([1.5])
    assert 6 <= clock.calls.count("kernels") <= 25


def test_other_sizes_are_other_calls() -> None:
    """The small calls have learned nothing when the large ones run by kernels."""
    clock = Clock(native=1_000, kernels=400)
    call = clock.choice()
    for _ in range(200):
        call([4096])
    clock.calls.clear()
    call([7])
    assert clock.calls == ["native"]


def test_results_that_have_to_repeat_are_of_one_form() -> None:
    clock = Clock(native=1_000, kernels=400)
    call = clock.choice(build_us=0)
    torch.use_deterministic_algorithms(True)
    try:
        for _ in range(50):
            call([1.5])
    finally:
        torch.use_deterministic_algorithms(False)
    assert set(clock.calls) == {"native"}


@pytest.mark.parametrize("written", [(), (1,)])
def test_kernels_that_fail(written: tuple[int, ...], xpu: torch.device) -> None:
    """Native code computes the call, on inputs as they were, and all others."""
    clock = Clock(native=1_000, kernels=400)
    call = clock.choice(written=written, build_us=0)
    counted = torch.zeros(3, device=xpu)
    tried: list[None] = []

    def fail(inputs: list[Any]) -> Sequence[Any]:
        tried.append(None)
        for at in written:
            inputs[at].fill_(-1)
        inputs.clear()
        raise RuntimeError("the kernel does not build\n<source>")

    native = call.native

    def count(inputs: list[Any]) -> Sequence[Any]:
        inputs[1].add_(1)
        return native(inputs)

    call.native, call.kernels = count, fail

    def run() -> None:
        for _ in range(30):
            assert call([1.5, counted]) == ["native"]

    with pytest.warns(RuntimeWarning, match="native code: kernels failed. the kernel"):
        run()
    assert counted.tolist() == [30] * 3
    assert len(tried) == 1


@pytest.mark.mappings("CPU")  # under AUTO the call may be timed, and raise at once
def test_a_wrong_index_of_earlier_work_is_no_failure_of_kernels(
    xpu: torch.device,
) -> None:
    clock = Clock(native=1_000, kernels=400)
    call = clock.choice(build_us=0)
    run = clock.form("kernels")

    def wait(inputs: list[Any]) -> Sequence[Any]:
        torch.xpu.synchronize()
        return run(inputs)

    call.kernels = wait
    index = torch.tensor([[9]], device=xpu)
    with xpurt.kernel_policy("sycl"):
        # Its wrong index is a RuntimeError.
        F.embedding_bag(index, torch.ones(3, 4, device=xpu))
    with pytest.raises(RuntimeError, match="submitted earlier"):
        call._tried(wait, [1.5])
    assert call.kernels is wait
    assert call._tried(wait, [1.5]) == ["kernels"]


def test_a_mapping_whose_memory_the_host_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(native=1_000, kernels=400)
    call = clock.choice()
    call([1.5])
    monkeypatch.setattr(_C, "host_computes", lambda index: False)
    call([1.5])
    assert clock.calls == ["native", "kernels"]


def test_an_explanation_has_the_form_and_the_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock(native=1_000, kernels=400)
    call = clock.choice()
    (before,) = xpurt.explain(call, [1.5]).graphs
    assert before.form == "native code"
    assert before.kernels == FormTimes(expected_us=500, measured_us=None)
    for _ in range(200):
        call([1.5])
    (after,) = xpurt.explain(call, [1.5]).graphs
    assert after.sentence in capsys.readouterr().out
    assert after.sentence == (
        "compiled graph ran as kernels: native code 1,000 us measured, kernels 400 us "
        "measured."
    )


def chain(x: Tensor) -> Tensor:
    for _ in range(5):
        x = torch.tanh(torch.exp(x * 0.1))
    return x


def choices(monkeypatch: pytest.MonkeyPatch, least_us: float = 0) -> list[FormChoice]:
    """The choices that are made from now on; short graphs may have one."""
    monkeypatch.setattr(form_estimate, "LEAST_US", least_us)
    monkeypatch.setattr(form_estimate, "_LAUNCH_US", 0)
    return made_choices(monkeypatch, second_form, "FormChoice")


def test_both_forms_of_a_training_step(
    monkeypatch: pytest.MonkeyPatch, xpu: torch.device
) -> None:
    """Forward and backward graphs are measured apart, and work in any combination."""
    made = choices(monkeypatch)

    def program(x: Tensor, y: Tensor) -> Tensor:
        return torch.lgamma(chain(x @ y) + 2).sum()  # its gradient is the digamma

    compiled = torch.compile(program)
    x, y = torch.randn(2, 64, 64).to(xpu)
    expected = x.clone().requires_grad_()
    program(expected, y).backward()
    compiled(x.clone().requires_grad_(), y).backward()
    assert len(made) == 2
    for forms in itertools.product(("native", "kernels"), repeat=2):
        monkeypatch.setattr(FormChoice, "__call__", run_form(made, *forms))
        found = x.clone().requires_grad_()
        compiled(found, y).backward()
        assert_close(found.grad, expected.grad, rtol=1e-4, atol=1e-5)


def run_form(made: list[FormChoice], *forms: str) -> Any:
    """A call of a choice that runs the form given for it, by the order of `made`."""

    def call(self: FormChoice, inputs: list[Any]) -> Sequence[Any]:
        found: Sequence[Any] = getattr(self, forms[made.index(self)])(inputs)
        return found

    return call


def again(function: Callable[..., Any], *inputs: Tensor) -> torch.fx.GraphModule | None:
    """A graph that was changed for the host, as a graph of xpu tensors."""
    graph = make_fx(function, tracing_mode="fake")(*inputs)
    host_graph.to_host(graph, 0)
    home = host_graph.home_of(graph)
    assert home is not None
    return host_graph.on_device_again(graph, home)


def test_a_graph_for_the_host_becomes_one_of_xpu_tensors_again(
    xpu: torch.device,
) -> None:
    def program(x: Tensor) -> list[Tensor | None]:
        return [chain(x) + torch.ones(3, device=x.device), None]

    graph = again(program, torch.rand(3, device=xpu))
    assert graph is not None
    assert "device(type='cpu')" not in graph.code
    assert host_graph.home_of(graph) is None
    x = torch.rand(3, device=xpu)
    assert_close(graph(x)[0], chain(x) + 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [torch.rand_like(x)],
        lambda x: [x + torch.ones(3).to(x.device)],
        lambda x: [x + torch.tensor([1.0, 2.0, 3.0], device=x.device)],
    ],
    ids=["random numbers", "a CPU tensor", "a constant"],
)
def test_graphs_that_are_left_to_native_code(
    xpu: torch.device, function: Callable[..., Any]
) -> None:
    assert again(function, torch.ones(3, device=xpu)) is None


def test_the_policy_native_makes_no_kernels_beside(
    monkeypatch: pytest.MonkeyPatch, xpu: torch.device
) -> None:
    made = choices(monkeypatch)
    with xpurt.kernel_policy("native"):
        torch.compile(chain)(torch.ones(64, device=xpu))
    assert made == []


def test_inputs_that_are_written(
    monkeypatch: pytest.MonkeyPatch, xpu: torch.device
) -> None:
    """Each call runs one form only."""
    made = choices(monkeypatch)

    def program(x: Tensor, total: Tensor) -> Tensor:
        total += chain(x)
        return total * 2

    compiled = torch.compile(program)
    x = torch.linspace(0, 1, 64).to(xpu)
    total = torch.zeros(64, device=xpu)
    compiled(x, total)
    (choice,) = made
    for form in ("kernels", "native"):
        monkeypatch.setattr(FormChoice, "__call__", run_form(made, form))
        assert_close(compiled(x, total), total * 2)
    assert_close(total, chain(x) * 3)
    assert choice.written
