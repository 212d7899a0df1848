"""`xpurt.testing.check_kernels`. What needs Oclgrind runs with `make test-oclgrind`."""

import os
from pathlib import Path

import pytest
import torch
from own_process import output

import xpurt.testing
from xpurt.launch_recorder import launches_in, read_launch
from xpurt.testing.kernels import faults_in, recording

needs_oclgrind = pytest.mark.skipif(
    "OCLGRIND" not in os.environ, reason="needs Oclgrind: make test-oclgrind"
)
LIBRARY = os.environ.get("OCLGRIND", "")


def adds(size: int) -> None:
    x = torch.arange(float(size)).to("xpu")
    assert (x + 1).sum().item() == size * (size + 1) / 2


def reads_what_nothing_wrote() -> None:
    torch.empty(5, device="xpu").add_(1).cpu()


def fills_complex_halves() -> None:
    torch.zeros(4, 6, dtype=torch.complex32, device="xpu").fill_(2)


def raises() -> None:
    raise ValueError("no kernel")


def computes_nothing() -> None:
    torch.ones(3)


def test_a_launch_is_recorded_with_its_memory(tmp_path: Path) -> None:
    code = """
    import torch, xpurt
    x = torch.arange(6.0).to("xpu")
    y = x[2:] * 3
    torch.xpu.synchronize()
    """
    assert output(code, fresh=True, **recording(tmp_path)) == ""
    (path,) = launches_in(tmp_path)
    launch = read_launch(path)
    result, operand = launch.allocations
    numbers = torch.frombuffer(bytearray(operand.before), dtype=torch.float32)
    assert numbers.tolist() == [0, 1, 2, 3, 4, 5]
    numbers = torch.frombuffer(bytearray(result.after), dtype=torch.float32)
    assert numbers[:4].tolist() == [6, 9, 12, 15]
    assert (result.is_written, operand.is_written) == (False, True)
    pointers = [each for each in launch.arguments if each.kind == "memory"]
    assert [(each.allocation, each.offset) for each in pointers] == [(0, 0), (1, 8)]
    source = (tmp_path / f"{launch.program}.cl").read_text()
    assert source.startswith("// ")
    assert f"{launch.kernel}(" in source
    assert launch.global_size[0] >= 4


def test_messages_of_the_simulator() -> None:
    said = (
        "\nRead-write data race at global memory address 0x1\n\tKernel: f\n\n"
        "\tFirst entity:  Global(1,0,0)\n\t  load\n\tAt line 3 (column 4) of input.cl:\n"
        "\t  y[0] = x[i];\n\n\tSecond entity: Global(2,0,0)\n\t  store\n\n"
        "\nInvalid write of size 4 at global memory address 0x2\n\tKernel: g\n"
        "\tAt line 9 (column 1) of input.cl:\n\t  y[n] = 1;\n"
        "\nControlflow depends on uninitialized value\n\tKernel: g\n"
        "\tAt line 8 (column 1) of input.cl:\n\t  if (n)\n"
    )
    found = [(each.kind, each.kernel, each.line) for each in faults_in(said, 7)]
    assert found == [
        ("race", "f", "y[0] = x[i];"),
        ("out of bounds", "g", "y[n] = 1;"),
        ("uninitialized", "g", "if (n)"),
    ]


def test_without_oclgrind_it_says_where_to_get_it() -> None:
    with pytest.raises(FileNotFoundError, match="apt install oclgrind"):
        xpurt.testing.check_kernels(adds, 3, library="/nowhere/lib.so")


def test_a_function_that_raises() -> None:
    with pytest.raises(RuntimeError, match="ended its process with 1"):
        xpurt.testing.check_kernels(raises, library=__file__)


def test_a_function_without_kernels() -> None:
    with pytest.raises(RuntimeError, match="computed nothing on xpu"):
        xpurt.testing.check_kernels(computes_nothing, library=__file__)


@needs_oclgrind
def test_kernels_without_a_fault() -> None:
    check = xpurt.testing.check_kernels(adds, 1000, library=LIBRARY)
    assert check.launches >= 2
    assert (check.faults, check.not_run) == ([], {})
    assert (check.differing, check.rounded) == ({}, {})


@needs_oclgrind
def test_a_fill_reads_nothing() -> None:
    check = xpurt.testing.check_kernels(fills_complex_halves, library=LIBRARY)
    assert (check.faults, check.differing) == ([], {})


@needs_oclgrind
def test_what_nothing_wrote() -> None:
    check = xpurt.testing.check_kernels(reads_what_nothing_wrote, library=LIBRARY)
    assert {each.kind for each in check.faults} == {"uninitialized"}


OWN = """
#include <torch/extension.h>
#include <xpurt/opencl_kernel.h>
#include <xpurt/queue.h>

xpurt::OpenClKernels kernel(
    "kernel void total(global float* x, global float* y) {"
    "  y[0] += x[get_global_id(0)]; }", "total");

void total(const at::Tensor& x, at::Tensor& y) {
  sycl::queue& queue = xpurt::current_queue(x.device().index());
  const sycl::kernel built = kernel.on(queue);
  queue.submit([&](sycl::handler& h) {
    h.set_args(x.mutable_data_ptr<float>(), y.mutable_data_ptr<float>());
    h.parallel_for(sycl::range<1>(x.numel()), built);
  });
}

TORCH_LIBRARY(own_with_a_race, m) {
  m.def("total(Tensor x, Tensor(a!) y) -> ()", &total);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
"""


def sums_with_a_race(source: str) -> None:
    from xpurt.cpp_extension import load

    load("own_with_a_race", [source])
    x, y = torch.ones(8).to("xpu"), torch.zeros(1).to("xpu")
    torch.ops.own_with_a_race.total(x, y)


@needs_oclgrind
def test_a_race_in_a_kernel_of_an_extension(tmp_path: Path) -> None:
    source = tmp_path / "own.cpp"
    source.write_text(OWN)
    check = xpurt.testing.check_kernels(sums_with_a_race, str(source), library=LIBRARY)
    assert {(each.kind, each.kernel) for each in check.faults} == {("race", "total")}
