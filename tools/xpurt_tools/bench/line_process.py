"""A process of the bench that answers requests, a line for a line, with one thread."""

import os
import subprocess
import sys
from collections.abc import Mapping

# The CPU device, PyTorch's kernels and MKL have a thread each.
ONE_CORE = {"DPCPP_CPU_NUM_CUS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class LineProcess:
    """Runs a module, with `variables` beside this process's environment and ONE_CORE."""

    def __init__(self, module: str, variables: Mapping[str, str]) -> None:
        self.module = module
        self.process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_CORE, **variables},
        )

    def send(self, request: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{request}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """The next line. Raises RuntimeError if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait(timeout=60)
            raise RuntimeError(f"{self.module} ended with {code}; its output is above")
        return line

    def end(self) -> None:
        """Lets it end; it has no more requests."""
        assert self.process.stdin is not None
        self.process.stdin.close()
