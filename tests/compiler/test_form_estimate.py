"""The expected times of the two forms of a graph: no device, and no compiler."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from xpurt.compiler.form_estimate import DeviceRates, Estimate, estimate, work_of

MANY = 1 << 24
GPU = DeviceRates(launch_us=15, bytes_per_us=400_000, flops_per_us=10_000_000)


def traced(function: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    given = [torch.empty(shape, device="meta") for shape in shapes]
    return make_fx(function, tracing_mode="fake")(*given)


def of(
    function: Callable[..., Any], *shapes: tuple[int, ...], units: int = 1
) -> Estimate:
    return estimate(work_of(traced(function, *shapes)), units)


def chain(x: Tensor) -> Tensor:
    for _ in range(5):
        x = torch.tanh(torch.exp(x))
    return x


def cheap(x: Tensor) -> Tensor:
    for _ in range(10):
        x = torch.relu(x * 2 + 1)
    return x


def test_the_work_of_a_graph() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        return (torch.exp(x) @ y).t().sum(0)

    work = work_of(traced(program, (8, 16), (16, 4)))
    assert work.evaluations == {"exp": 128}
    assert work.others == 32  # the elements that are added; a view computes nothing
    assert work.size_bytes == 4 * (128 + 64 + 8)
    assert work.flops == 2 * 8 * 16 * 4


def test_a_chain_of_transcendental_functions_may_pay() -> None:
    assert of(chain, (MANY,)).kernels_may_pay


@pytest.mark.parametrize(
    ("function", "elements"), [(cheap, MANY), (torch.sin, MANY), (chain, 1 << 14)]
)
def test_graphs_that_are_compiled_once(
    function: Callable[[Tensor], Tensor], elements: int
) -> None:
    """Cheap ops, functions that kernels do not compute faster, and short calls."""
    assert not of(function, (elements,)).kernels_may_pay


def test_threads_share_the_work() -> None:
    one, two = (of(chain, (MANY,), units=units) for units in (1, 2))
    assert two.native_us == pytest.approx(one.native_us / 2)


def test_a_fast_device_beside_the_host_may_pay() -> None:
    work = work_of(traced(torch.mm, (2048, 2048), (2048, 2048)))
    assert not estimate(work, 8).kernels_may_pay
    assert estimate(work, 8, [GPU]).kernels_may_pay


def test_a_size_that_depends_on_data() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.exp(x[x > 0])

    graph = make_fx(program, tracing_mode="symbolic")(torch.rand(100) - 0.5)
    assert work_of(graph).evaluations["exp"] == 1
