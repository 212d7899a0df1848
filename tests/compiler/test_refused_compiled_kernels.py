"""Kernels of compiled programs that the driver refuses, and what they do not have."""

from collections.abc import Callable, Iterator

import pytest
import torch
from own_process import compiling_run as run
from torch import Tensor
from torch._dynamo.exc import BackendCompilerFailed
from torch._inductor.lowering import lowerings
from torch._inductor.utils import run_and_get_code

import xpurt
from xpurt import _C
from xpurt.compiler import kernel_launch
from xpurt.compiler.form_estimate import Estimate

WARNED = (
    r"torch.compile runs op by op: the driver of .* refuses the kernel opencl_kernel"
)


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Makes the driver refuse the kernels whose text has certain words."""
    keep_source = kernel_launch.keep_source

    def spoil(words: str) -> None:
        def spoilt(name: str, text: str, *more: object) -> str:
            end = "\nthis is no C" if words in text else ""
            return keep_source(name, text + end, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(kernel_launch, "keep_source", spoilt)

    with xpurt.kernel_policy("sycl"):
        yield spoil


def two_kernels(x: Tensor, written: Tensor) -> Tensor:
    written.add_(1)
    return (written @ x).atan()


def test_nothing_is_computed_twice(
    xpu: torch.device, spoil: Callable[[str], None]
) -> None:
    """The first kernel writes to an input, and the second one is refused."""
    spoil("atan")
    x, written = torch.ones(3, 3, device=xpu), torch.zeros(3, 3, device=xpu)
    compiled = torch.compile(two_kernels)
    with pytest.warns(RuntimeWarning, match=WARNED) as warned:
        found = [compiled(x, written) for _ in range(2)]
    said = [
        str(each.message) for each in warned if "runs op by op" in str(each.message)
    ]
    assert len(said) == 1
    assert "error" in said[0]
    assert "__kernel" not in said[0]
    torch.testing.assert_close(found[0].cpu(), torch.full((3, 3), 3.0).atan())
    assert torch.equal(written.cpu(), torch.full((3, 3), 2.0))


@pytest.mark.filterwarnings("ignore:torch.compile runs op by op")
def test_a_graph_from_the_cache(
    xpu: torch.device, spoil: Callable[[str], None]
) -> None:
    def program(x: Tensor) -> Tensor:
        return x.atanh() * 7

    x = torch.rand(5, device=xpu) / 2
    expected = program(x)
    torch.testing.assert_close(torch.compile(program)(x), expected)
    for _ in range(2):
        torch._dynamo.reset()
        spoil("7.0")
        torch.testing.assert_close(torch.compile(program)(x), expected)


@pytest.mark.filterwarnings("ignore:torch.compile runs op by op")
def test_the_kernel_of_a_gradient(
    xpu: torch.device, spoil: Callable[[str], None]
) -> None:
    def program(x: Tensor) -> Tensor:
        return x.sinh().sum()

    spoil("cosh")
    x = torch.rand(5, device=xpu, requires_grad=True)
    torch.compile(program)(x).backward()
    torch.testing.assert_close(x.grad, x.detach().cosh())


def test_under_fullgraph_it_raises(
    xpu: torch.device, spoil: Callable[[str], None]
) -> None:
    spoil("acosh")
    compiled = torch.compile(lambda x: x.acosh(), fullgraph=True)
    with pytest.raises(
        BackendCompilerFailed, match=r"(?s)refuses the kernel .* Leave fullgraph out"
    ):
        compiled(torch.ones(3, device=xpu) * 2)


def test_of_several_devices_the_home_device_computes_it() -> None:
    """The driver of the home device builds the kernel, that of the GPU refuses it."""
    ended = run(
        """
        import torch, warnings, xpurt
        from xpurt import _C
        from xpurt.kernels import registration

        asked = []

        def make_source(key, traits):
            entry, source = registration.make_source(key, traits)
            if entry.startswith("opencl_kernel"):
                asked.append(entry)
            return entry, source + "\\nthis is no C" if len(asked) == 2 else source

        x = torch.linspace(0, 1, 5000).to("xpu")
        _C.set_source_callbacks(make_source, registration.fail)
        compiled = torch.compile(lambda x: x.sin() * 3)
        with warnings.catch_warnings(record=True) as said, xpurt.prefer("GPU"):
            warnings.simplefilter("always")
            for _ in range(3):
                torch.testing.assert_close(compiled(x).cpu(), x.cpu().sin() * 3)
        (text,) = [str(each.message) for each in said if "refuses" in str(each.message)]
        print(len(asked), "from now on" in text)
        """,
        timeout=240,
        XPURT_MAPPING="AUTO",
        XPURT_VIRTUAL_GPU="strict",
        XPURT_KERNEL_POLICY="sycl",
    )
    assert ended.stdout == "2 True\n", ended.stderr


@pytest.mark.filterwarnings("error:torch.compile runs op by op")
def test_an_op_of_a_type_that_kernels_lack_is_called(xpu: torch.device) -> None:
    """And the rest of the graph are kernels."""

    def program(x: Tensor) -> Tensor:
        return (x * 2 + 1).to(torch.uint16).to(torch.float32) / 3

    x = torch.arange(5.0, device=xpu)
    with xpurt.kernel_policy("sycl"):
        found, (code,) = run_and_get_code(torch.compile(program, fullgraph=True), x)
    torch.testing.assert_close(found, program(x))
    assert code.count("__kernel void") == 2


def test_an_op_that_has_no_lowering(
    xpu: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lowering(*_: object) -> object:
        raise NotImplementedError("for this device")

    monkeypatch.setitem(lowerings, torch.ops.aten.asinh.default, no_lowering)
    x = torch.rand(8, 3).to(xpu)
    with (
        xpurt.kernel_policy("sycl"),
        pytest.warns(RuntimeWarning, match="op by op: .* target: aten.asinh.default"),
    ):
        found = torch.compile(lambda x: x.asinh().sin())(x)
    torch.testing.assert_close(found, x.asinh().sin())


@pytest.mark.mappings("CPU")
def test_native_code_needs_no_kernels(
    xpu: torch.device,
    spoil: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kernels beside native code that the driver refuses are left out."""
    if not _C.host_reads(xpu.index or 0):
        pytest.skip("the host cannot read the memory")
    spoil("atan")
    monkeypatch.setattr(Estimate, "kernels_may_pay", True)
    x = torch.ones(3, 5, device=xpu)
    with xpurt.kernel_policy("auto"):
        found = torch.compile(lambda x: x.atan() + 1)(x)
    torch.testing.assert_close(found, x.atan() + 1)
