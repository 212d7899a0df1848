"""A kernel of the host that stops in its middle, and threads for tests of it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

PATIENCE_S = 60.0

Tensor = torch.Tensor


class Task(threading.Thread):
    """A thread whose exception is raised by `done`."""

    def __init__(self, run: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self._run_it = run
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._run_it()
        except BaseException as error:
            self._error = error

    def done(self) -> None:
        self.join(PATIENCE_S)
        assert not self.is_alive(), "the thread hangs"
        if self._error is not None:
            raise self._error


class StoppedKernel:
    """Adds 1 to its tensor, the second half after `go_on`. It is the CPU's
    `linalg_eigvals` within `stopped_eigvals`; no device has a kernel of this op."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.go_on = threading.Event()
        self.within: Callable[[], Any] = lambda: None

    def __call__(self, source: Tensor, *, out: Tensor) -> Tensor:
        half = len(out) // 2
        out[:half].add_(1)
        self.within()
        self.inside.set()
        assert self.go_on.wait(PATIENCE_S)
        out[half:].add_(1)
        return out

    def begin(self, tensor: Tensor) -> Task:
        """Runs it in another thread. Returns when it is in its middle."""
        source = torch.ones_like(tensor)
        torch.xpu.synchronize()
        task = Task(lambda: torch.linalg.eigvals(source, out=tensor))
        if not self.inside.wait(PATIENCE_S):
            task.done()
        return task

    def finish(self, task: Task) -> None:
        self.go_on.set()
        task.done()


@contextmanager
def stopped_eigvals() -> Iterator[StoppedKernel]:
    made = StoppedKernel()
    library = torch.library.Library("aten", "IMPL")
    library.impl("linalg_eigvals.out", made, "CPU", allow_override=True)
    try:
        yield made
    finally:
        made.go_on.set()
        library._destroy()
