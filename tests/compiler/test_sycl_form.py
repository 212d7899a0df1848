"""The choice between code for the host and kernels, and programs of kernels alone."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import BackendCompilerFailed
from torch._inductor.utils import run_and_get_code
from torch.testing import assert_close

import xpurt
from xpurt import _C

pytestmark = pytest.mark.filterwarnings("error:torch.compile runs")


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32))


def code_of(policy: str, xpu: torch.device) -> str:
    torch._dynamo.reset()
    with xpurt.kernel_policy(policy):
        compiled = torch.compile(lambda x: x * 2 + 1)
        _, (code,) = run_and_get_code(compiled, torch.ones(4, device=xpu))
    return str(code)


def test_the_policy_sycl_makes_kernels(xpu: torch.device) -> None:
    assert "__kernel void" in code_of("sycl", xpu)


def test_the_policy_auto_makes_kernels_where_the_host_cannot_read(
    xpu: torch.device,
) -> None:
    assert ("__kernel void" in code_of("auto", xpu)) != _C.host_reads(xpu.index)


def test_the_policy_native_makes_no_kernels(xpu: torch.device) -> None:
    if not _C.host_reads(xpu.index):
        with pytest.raises(BackendCompilerFailed, match="runs op by op"):
            code_of("native", xpu)
        return
    assert "cpp_fused" in code_of("native", xpu)


def test_a_training_step_of_kernels(xpu: torch.device) -> None:
    """Under AUTO each kernel runs where it is predicted to finish first."""
    model = small().to(xpu)
    eager, x = copy.deepcopy(model), torch.randn(4, 16).to(xpu)
    with xpurt.kernel_policy("sycl"):
        found = torch.compile(model, fullgraph=True)(x)
        found.square().mean().backward()
    expected = eager(x)
    expected.square().mean().backward()
    assert_close(found, expected, rtol=1e-4, atol=1e-5)
    for one, other in zip(model.parameters(), eager.parameters(), strict=True):
        assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-5)


def test_a_part_of_a_buffer_keeps_the_rest(xpu: torch.device) -> None:
    """Under AUTO a kernel may run where the rest of its result is not."""

    def join(x: Tensor, y: Tensor) -> Tensor:
        return torch.cat([x @ x, (y + 1) @ y, x.sin()])

    x, y = torch.randn(8, 8).to(xpu), torch.randn(8, 8).to(xpu)
    with xpurt.kernel_policy("sycl"):
        assert_close(torch.compile(join)(x, y), join(x, y), rtol=1e-4, atol=1e-5)


def test_kernels_of_a_graph_that_is_recorded(xpu: torch.device) -> None:
    x = torch.ones(64, device=xpu)
    with xpurt.kernel_policy("sycl"):
        compiled = torch.compile(lambda x: (x * 3).exp().sum())
        compiled(x)
        try:
            graph = torch.xpu.XPUGraph()
            with torch.xpu.graph(graph):
                total = compiled(x)
        except RuntimeError as error:
            pytest.skip(f"no capture here: {error}")
        x.zero_()
        graph.replay()
        assert total.item() == 64


@pytest.mark.parametrize(
    ("arguments", "numbers", "message"),
    [
        ("r", [3], "argument 0 of the kernel .* is no tensor"),
        ("ri", [], "takes 2 arguments; found 1"),
        ("i", [3], "has no tensor"),
    ],
)
def test_wrong_arguments_of_a_kernel(
    xpu: torch.device, arguments: str, numbers: list[int], message: str
) -> None:
    launch = _C.make_launcher(
        key="unused", arguments=arguments, group=(1, 1, 1), lanes=False,
        faults=False, flops=1, sizes=[1, 1, 1],
    )  # fmt: skip
    given = [] if numbers else [torch.ones(1, device=xpu)]
    with pytest.raises((ValueError, TypeError), match=message):
        launch(*given, *numbers)


def test_a_tensor_of_the_cpu_is_refused(xpu: torch.device) -> None:
    launch = _C.make_launcher(
        key="unused", arguments="r", group=(1, 1, 1), lanes=False, faults=False,
        flops=1, sizes=[1, 1, 1],
    )  # fmt: skip
    with pytest.raises(ValueError, match="is on cpu, not on xpu"):
        launch(torch.ones(1))


@pytest.mark.filterwarnings("error:torch.compile runs op by op")
def test_an_op_with_a_dtype_that_kernels_do_not_have(xpu: torch.device) -> None:
    """It is called alone; the rest are kernels."""
    x = torch.tensor([0, 1, 2, 3, 4], dtype=torch.uint16).to(xpu)
    with xpurt.kernel_policy("sycl"):
        found, (code,) = run_and_get_code(torch.compile(lambda x: x.int() + 1), x)
    assert found.tolist() == [1, 2, 3, 4, 5]
    assert code.count("__kernel void") == 1


def test_a_graph_keeps_its_form_when_the_policy_changes(xpu: torch.device) -> None:
    x = torch.ones(8, device=xpu)
    with xpurt.kernel_policy("sycl"):
        compiled = torch.compile(lambda x: x * 3 + 2)
        compiled(x)
    with xpurt.kernel_policy("native"):
        (row,) = xpurt.explain(compiled, x)
    assert (row.op, row.tier) == ("opencl_kernel0", "sycl")
