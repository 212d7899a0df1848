"""Fused ops as PyTorch's dispatcher, autograd and compiler see them."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pytest
import torch
from own_process import output
from torch import Tensor

import xpurt
from fused_ops.fused_cases import CASES, OPS, Case, on, transposed
from fused_ops.test_fused_values import gradients, near, results_of

BACKWARDS: dict[str, Any] = {
    "swiglu_backward": lambda: (torch.randn(3, 8), torch.randn(3, 8), torch.randn(3, 8)),
    "rms_norm_add_backward": lambda: (
        torch.randn(3, 8), None, torch.randn(3, 8), torch.randn(8), 1e-6,
    ),
    "fused_cross_entropy_backward": lambda: (
        torch.randn(3), torch.randn(3, 8), torch.randn(5, 8), torch.tensor([0, 4, 2]),
        torch.randn(5), -100, "none", 0.1, 2, [True, False, True],
    ),
}  # fmt: skip


def test_ops_are_there_after_the_import() -> None:
    names = sorted({case.op for case in CASES})
    program = f"""
import xpurt, torch
for name in {names}:
    print(getattr(torch.ops.xpurt, name).default._schema)
    """
    printed = output(program).splitlines()
    assert [line.partition("(")[0] for line in printed] == [
        f"xpurt::{n}" for n in names
    ]


@pytest.mark.parametrize("case", OPS, ids=str)
def test_opcheck(case: Case, device: str, xpu: torch.device) -> None:
    arguments = on(device, case.made(torch.float32))
    torch.library.opcheck(getattr(torch.ops.xpurt, case.op).default, tuple(arguments))


@pytest.mark.parametrize("name", BACKWARDS)
def test_opcheck_of_gradients(name: str, device: str, xpu: torch.device) -> None:
    arguments = on(device, BACKWARDS[name]())
    op = getattr(torch.ops.xpurt, name).default
    torch.library.opcheck(op, tuple(arguments))
    checked_in_layout_and_aliases(op, [transposed(each) for each in arguments])


def checked_in_layout_and_aliases(op: Any, arguments: list[Any]) -> None:
    """The results have the strides of fake ones, and memory of their own."""
    utils = "test_schema", "test_faketensor"
    torch.library.opcheck(op, tuple(arguments), test_utils=utils)


@pytest.mark.on_cpu
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layouts_and_aliases(case: Case, device: str, xpu: torch.device) -> None:
    op = getattr(torch.ops.xpurt, case.op).default
    arguments = on(device, case.made(torch.float32))
    for given in (arguments, [transposed(each) for each in arguments]):
        checked_in_layout_and_aliases(op, given)


def chosen(cases: Iterable[Case], names: Collection[str]) -> list[Any]:
    """The cases, of which those with other names are slow."""
    slow = pytest.mark.slow
    return [
        case if case.name in names else pytest.param(case, marks=slow) for case in cases
    ]


def of_tensors(case: Case, arguments: list[Any]) -> tuple[Any, list[Tensor]]:
    """The op as a function of the arguments that have gradients."""

    def function(*given: Tensor) -> Any:
        everything = list(arguments)
        for position, each in zip(case.differentiable, given, strict=True):
            everything[position] = each
        return case.fused(*everything)

    return function, [arguments[position] for position in case.differentiable]


DIFFERENTIABLE = [case for case in CASES if case.differentiable]
# Formulas that differ. Those of three dimensions take seconds.
TWICE = [
    case for case in DIFFERENTIABLE if "3d" not in case.name and "2d" not in case.name
]


@pytest.mark.on_cpu
@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_gradcheck(case: Case, device: str, xpu: torch.device) -> None:
    function, inputs = of_tensors(case, on(device, case.made(torch.float64)))
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)


@pytest.mark.on_cpu
@pytest.mark.parametrize(
    "case", chosen(TWICE, ["linear_silu", *(case.name for case in OPS)]), ids=str
)
def test_second_derivatives(case: Case, device: str, xpu: torch.device) -> None:
    function, inputs = of_tensors(case, on(device, case.made(torch.float64)))
    assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True, atol=1e-4)


@pytest.mark.parametrize("case", OPS, ids=str)
def test_only_one_operand_requires_a_gradient(
    case: Case, device: str, xpu: torch.device
) -> None:
    for position in case.differentiable:
        arguments = [
            each.detach() if isinstance(each, Tensor) else each
            for each in on(device, case.made(torch.float64))
        ]
        arguments[position].requires_grad_()
        exact = on("cpu", arguments)
        found = gradients(case.fused(*arguments), arguments)
        near(found, gradients(case.plain(*exact), exact), 1e-10)


@pytest.fixture
def compiled_anew() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


# Compiling for the CPU takes a C++ compiler's seconds per case.
BY_KIND = ("linear_none", "rms_norm_add", "cross_entropy_mean")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", chosen(OPS, BY_KIND), ids=str)
def test_compiled(
    case: Case, device: str, xpu: torch.device, compiled_anew: None
) -> None:
    """In one graph, with ops before and after, and its gradients."""

    def program(*arguments: Any) -> Any:
        first, *others = arguments
        made = case.fused(first * 2, *others)
        return tuple(each + 1 for each in results_of(made))

    compiled = torch.compile(program, fullgraph=True)
    arguments = on(device, case.made(torch.float32))
    again = on(device, arguments)
    made, eager = compiled(*arguments), program(*again)
    near(results_of(made), results_of(eager), 1e-5)
    near(gradients(made, arguments), gradients(eager, again), 1e-4)


@pytest.mark.parametrize("case", OPS, ids=str)
def test_meta_tensors_have_the_sizes(case: Case) -> None:
    arguments = case.made(torch.float32)
    expected = results_of(case.plain(*arguments))
    made = results_of(case.fused(*on("meta", arguments)))
    assert [each.shape for each in made] == [each.shape for each in expected]
    assert all(each.is_meta for each in made)


CAST = [
    next(case for case in CASES if case.op == op)
    for op in ("linear_activation", "conv_bn_activation", "fused_cross_entropy")
]


@pytest.mark.parametrize("case", CAST, ids=str)
def test_autocast(case: Case, device: str, xpu: torch.device) -> None:
    """The product is one of bfloat16, and gradients have the types of the operands."""
    given = case.made(torch.float32)
    arguments = on(device, given)
    with torch.autocast(device, dtype=torch.bfloat16):
        made = case.fused(*arguments)
        expected = case.plain(*on(device, given))
    assert made.dtype == expected.dtype
    exact = case.fused(*arguments)
    assert float((made.float() - exact).detach().abs().max()) > 0  # it was rounded
    near([made], [expected.cpu()], 3e-2)
    found = gradients(made, arguments)
    assert all(each.dtype == torch.float32 for each in found)


def test_autocast_leaves_float64(device: str, xpu: torch.device) -> None:
    arguments = on(device, CAST[0].made(torch.float64))
    with torch.autocast(device, dtype=torch.bfloat16):
        assert CAST[0].fused(*arguments).dtype == torch.float64


def test_the_policy_native(xpu: torch.device) -> None:
    """The rows are the only kernels of these ops on xpu: every policy takes them."""
    x = torch.randn(4, 8, device=xpu)
    with xpurt.kernel_policy("native"):
        made = torch.ops.xpurt.swiglu(x, x)
    near([made], [(torch.nn.functional.silu(x) * x).cpu()], 1e-6)
