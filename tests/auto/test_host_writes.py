"""Two threads write to parts of one tensor, one of them by a kernel of the host.

See Note [Host writes]. Most tests stop a host kernel in its middle.
"""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import xpurt
from auto.choices import Choices
from auto.stopped_kernel import PATIENCE_S, StoppedKernel, Task, stopped_eigvals

Tensor = torch.Tensor
ROW = 1 << 12


@pytest.fixture
def kernel(choices: Choices) -> Iterator[StoppedKernel]:
    with stopped_eigvals() as made:
        yield made


def zeros(*sizes: int) -> Tensor:
    made = torch.zeros(*sizes, device="xpu")
    torch.xpu.synchronize()
    return made


def test_another_row_is_written_on_the_gpu_meanwhile(
    choices: Choices, kernel: StoppedKernel
) -> None:
    x = zeros(2, ROW)
    choices.gpu()
    host = kernel.begin(x[0])
    for _ in range(3):
        gpu = Task(lambda: x[1].add_(2))
        gpu.done()  # it does not wait for the host
    read: list[float] = []
    reader = Task(lambda: read.extend((x[1] * 2).cpu().unique().tolist()))
    reader.done()
    assert read == [12.0]
    kernel.finish(host)
    assert x.cpu().unique(dim=1).tolist() == [[1.0], [6.0]]


def test_another_row_is_written_at_home_meanwhile(
    choices: Choices, kernel: StoppedKernel
) -> None:
    x = zeros(3, ROW)
    choices.gpu()
    x[2].add_(1)
    host = kernel.begin(x[0])
    choices.gpu()
    Task(lambda: x[1].add_(2)).done()
    with xpurt.kernel_policy("native"):
        Task(lambda: x[2].add_(3)).done()
    choices.cpu()
    Task(lambda: x[1].add_(4)).done()
    kernel.finish(host)
    assert x.cpu().unique(dim=1).tolist() == [[1.0], [6.0], [4.0]]


def test_another_column_is_written_afterwards(
    choices: Choices, kernel: StoppedKernel
) -> None:
    x = zeros(ROW, 2)
    choices.gpu()
    x[:, 1].add_(0)  # builds the kernel
    host = kernel.begin(x[:, 0])
    gpu = Task(lambda: x[:, 1].add_(2))
    gpu.join(0.3)
    assert gpu.is_alive()
    kernel.finish(host)
    gpu.done()
    assert x.cpu().unique(dim=0).tolist() == [[1.0, 2.0]]


def test_a_reader_elsewhere_waits_for_what_it_reads(
    choices: Choices, kernel: StoppedKernel
) -> None:
    x = zeros(2, ROW)
    choices.gpu()
    assert (x * 2).cpu().sum() == 0  # builds the kernel
    host = kernel.begin(x[0])
    read: list[Any] = []
    gpu = Task(lambda: read.extend((x * 2).cpu().unique(dim=1).tolist()))
    gpu.join(0.3)
    assert gpu.is_alive()
    kernel.finish(host)
    gpu.done()
    assert read == [[2.0], [0.0]]
    assert (x + 1).cpu().unique(dim=1).tolist() == [[2.0], [1.0]]


def test_a_host_kernel_may_use_its_own_storage(
    choices: Choices, kernel: StoppedKernel
) -> None:
    x = zeros(2, ROW)
    choices.gpu()
    found: list[float] = []

    def within() -> None:
        x[1].add_(5)
        found.append(x[1].sum().item())
        x[0].mul(2).sum().item()

    kernel.within = within
    host = kernel.begin(x[0])
    kernel.finish(host)
    assert found == [5.0 * ROW]
    assert x.cpu().unique(dim=1).tolist() == [[1.0], [5.0]]


def test_a_kernel_that_fails_no_longer_writes(
    choices: Choices, kernel: StoppedKernel
) -> None:
    x = zeros(2, ROW)
    choices.gpu()

    def fail() -> None:
        raise ValueError("in the middle")

    kernel.within = fail
    with pytest.raises(ValueError, match="in the middle"):
        torch.linalg.eigvals(zeros(ROW), out=x[0])
    gpu = Task(lambda: x.add_(2))
    gpu.done()
    assert x.cpu().unique(dim=1).tolist() == [[2.0, 3.0], [2.0, 2.0]]


def test_nobody_waits_for_a_kernel_of_another_library(choices: Choices) -> None:
    """It may wait for a lock of the program, which another thread holds."""
    library = torch.library.Library("xpurt_test_host_writes", "DEF")
    library.define("slow_(Tensor(a!) x) -> ()")
    lock, inside = threading.Lock(), threading.Event()

    def slow_(x: Tensor) -> None:
        inside.set()
        with lock:
            x.add_(1)

    library.impl("slow_", slow_, "CPU")
    x = zeros(2, ROW)
    choices.gpu()
    with lock:
        host = Task(lambda: torch.ops.xpurt_test_host_writes.slow_(x[0]))
        assert inside.wait(PATIENCE_S)
        Task(lambda: x[1].add_(2)).done()
        Task(lambda: (x * 2).sum().item()).done()  # what the kernel writes, too
    host.done()
    library._destroy()
    assert x[1].cpu().unique().tolist() == [2.0]


def test_what_a_kernel_keeps_stays_at_home(choices: Choices) -> None:
    """A collective, for example, writes after it returned."""
    library = torch.library.Library("xpurt_test_host_writes", "DEF")
    library.define("later_(Tensor(a!) x) -> ()")
    kept: list[Tensor] = []
    library.impl("later_", kept.append, "CPU")
    x = zeros(ROW)
    choices.gpu()
    x.add_(1)
    torch.ops.xpurt_test_host_writes.later_(x)
    choices.gpu()
    x.add_(1)
    torch.xpu.synchronize()
    kept.pop().add_(1)
    assert x.cpu().unique().tolist() == [3.0]
    library._destroy()


def test_a_device_gets_its_turn(choices: Choices, kernel: StoppedKernel) -> None:
    """Host kernels that follow each other do not keep a device out."""
    x = zeros(ROW, 2)
    source = zeros(ROW)
    choices.gpu()
    kernel.go_on.set()
    stop = threading.Event()
    rounds = 0

    def write() -> None:
        nonlocal rounds
        while not stop.is_set():
            torch.linalg.eigvals(source, out=x[:, 0])
            rounds += 1

    host = Task(write)
    for _ in range(20):
        Task(lambda: x[:, 1].add_(1)).done()
    stop.set()
    host.done()
    assert x.cpu().unique(dim=0).tolist() == [[float(rounds), 20.0]]


# Each adds 1 to a row on the host.
HOST_WRITES: dict[str, Callable[[Tensor], object]] = {
    "structured": lambda row: row.add_(1),
    "view": lambda row: row.addcmul_(torch.ones_like(row), torch.ones_like(row)),
    "out": lambda row: torch.add(row, 1, out=row),
    "host run": lambda row: row.put_(
        torch.arange(len(row), device="xpu"), torch.ones(len(row), device="xpu"), True
    ),
    "from the CPU": lambda row: row.copy_(row.cpu() + 1),
    "memcpy": lambda row: row.copy_(row + 1),
    "memset": lambda row: (row.zero_(), row.add_(row.new_ones(len(row)))),
    "other type": lambda row: row.copy_((row.cpu() + 1).double()),
}
# Wherever the other thread prefers its work to be.
KINDS = ("GPU", "CPU")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["native", "auto"])
@pytest.mark.parametrize("write", HOST_WRITES)
def test_rows_of_two_threads(
    auto_mapping: None, write: str, policy: str, kind: str
) -> None:
    rounds = 30
    x = zeros(4, 64)
    errors: list[str] = []

    def on_host() -> None:
        with torch.xpu.stream(torch.xpu.Stream()):
            for _ in range(rounds):
                HOST_WRITES[write](x[1])
            torch.xpu.current_stream().synchronize()

    def on_device() -> None:
        with torch.xpu.stream(torch.xpu.Stream()), xpurt.prefer(kind):
            for _ in range(rounds):
                x[2].add_(1)
                if (x[3] + x[2]).max().item() != x[2].min().item():
                    errors.append("a read of its own row")
            torch.xpu.current_stream().synchronize()

    with xpurt.kernel_policy(policy):
        for task in [Task(on_host), Task(on_device)]:
            task.done()
    torch.xpu.synchronize()
    assert errors == []
    of_host = 1.0 if write == "memset" else float(rounds)
    assert x.cpu().unique(dim=1).tolist() == [[0.0], [of_host], [float(rounds)], [0.0]]


def test_rows_of_two_devices(choices: Choices) -> None:
    """Each thread's kernels run on a device of their own, at the same time."""
    x = zeros(2, ROW)

    def work(row: int, kind: str) -> None:
        with torch.xpu.stream(torch.xpu.Stream()), xpurt.prefer(kind):
            for _ in range(50):
                x[row].add_(1)
            torch.xpu.current_stream().synchronize()

    choices.restore()
    for task in [Task(lambda: work(0, "GPU")), Task(lambda: work(1, "CPU"))]:
        task.done()
    assert x.cpu().unique(dim=1).tolist() == [[50.0], [50.0]]
