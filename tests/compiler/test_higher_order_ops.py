"""Ops that take functions: each is compiled in every form, or runs op by op. The others
are flex_attention and associative_scan, which have files of their own."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch._inductor.compile_fx import compile_fx
from torch.fx import Graph, GraphModule
from torch.testing import assert_close

import xpurt


def by_condition(x: Tensor, w: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda a, b: a * b, lambda a, b: a - b, (x, w))


def in_a_loop(x: Tensor, w: Tensor) -> Any:
    def body(i: Tensor, a: Tensor) -> Any:
        return i + 1, (a * w).sin()

    first = torch.zeros((), dtype=torch.int64, device=x.device)
    return while_loop(lambda i, a: i < 3, body, (first, x))[1]


def sums_so_far(x: Tensor, w: Tensor) -> Any:
    def add(total: Tensor, each: Tensor) -> Any:
        total = (total + each).sin()
        return total, total.clone()

    return scan(add, torch.zeros_like(w[0]), x * w)[1]


@torch.compiler.nested_compile_region
def _region(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).relu()


def in_regions(x: Tensor, w: Tensor) -> Any:
    return _region(x, w).sin() + _region(w, x)


def in_regions_of_results(x: Tensor, w: Tensor) -> Any:
    """PyTorch 2.13's gradients of CPU tensors are wrong here."""
    x, w = x.sin(), w.cos()
    return in_regions(x, w)


@torch.compiler.nested_compile_region
def _outer_region(x: Tensor, w: Tensor) -> Tensor:
    return _region(x, w) + _region(x * w, w).t()


def in_nested_regions(x: Tensor, w: Tensor) -> Any:
    return _outer_region(x, w) * _outer_region(w, x)


@torch.library.custom_op("xpurt_tests::scale_", mutates_args=("x",))
def scale_(x: Tensor, by: float) -> None:
    x.mul_(by)


def by_a_custom_op(x: Tensor, w: Tensor) -> Any:
    y = x + 1
    torch.ops.xpurt_tests.scale_(y, 2.0)
    return y * w


PROGRAMS = [
    by_condition,
    in_a_loop,
    sums_so_far,
    in_regions,
    in_regions_of_results,
    in_nested_regions,
    by_a_custom_op,
]


@pytest.mark.one_in(8)
@pytest.mark.mappings("CPU", "GPU", "AUTO")
@pytest.mark.parametrize("policy", ["auto", "native", "sycl"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_values(xpu: torch.device, program: Any, policy: str) -> None:
    given = [torch.randn(4, 4), torch.randn(4, 4)]
    expected = program(*given)
    with xpurt.kernel_policy(policy), torch.no_grad():
        found = torch.compile(program)(*(each.to(xpu) for each in given))
    assert_close(found.cpu(), expected)


@pytest.mark.one_in(6)
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients(xpu: torch.device, program: Any) -> None:
    given = [torch.randn(4, 4, requires_grad=True) for _ in range(2)]
    on_xpu = [each.detach().to(xpu).requires_grad_() for each in given]
    # What PyTorch differentiates in eager mode: a loop on the CPU is a loop of Python.
    expected = program(*given)
    if program is in_a_loop:
        expected = given[0]
        for _ in range(3):
            expected = (expected * given[1]).sin()
    found = torch.compile(program)(*on_xpu)
    assert_close(found.cpu(), expected)
    gradients = torch.autograd.grad(found.sum(), on_xpu)
    assert_close(
        [each.cpu() for each in gradients],
        list(torch.autograd.grad(expected.sum(), given)),
    )


@pytest.mark.mappings("CPU", "GPU")
def test_a_kernel_of_triton_is_refused(xpu: torch.device) -> None:
    from torch._higher_order_ops.triton_kernel_wrap import (
        triton_kernel_wrapper_mutation,
    )

    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(triton_kernel_wrapper_mutation, kwargs={"kwargs": {"x": x}})
    graph.output((x,))
    with pytest.raises(RuntimeError, match="Triton has no driver for it"):
        compile_fx(GraphModule({}, graph), [torch.ones(2, device=xpu)])


@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.parametrize("policy", ["auto", "sycl"])
def test_a_loop_over_a_number(xpu: torch.device, policy: str) -> None:
    """PyTorch raises an error of its passes for CPU tensors."""

    def program(x: Tensor) -> Any:
        return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.sin()), (0, x))[1]

    x = torch.randn(4)
    with (
        xpurt.kernel_policy(policy),
        pytest.warns(RuntimeWarning, match="by op: while_loop carries a Python number"),
    ):
        found = torch.compile(program)(x.to(xpu))
    assert_close(found.cpu(), x.sin().sin().sin())
