"""A process that times cases under one mapping, seen from its parent.

On a machine without a GPU the virtual GPU is the second device. With
``DPCPP_CPU_NUM_CUS=1`` the CPU device and the virtual GPU have a thread each, and with
``OMP_NUM_THREADS=1`` PyTorch's own kernels have one, too.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import xpurt
from xpurt.bench.auto.case import AutoCase
from xpurt.config import config

AUTO_MAPPING = "AUTO"  # the mapping of all devices
ONE_CORE = {
    "DPCPP_CPU_NUM_CUS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XPURT_LEARN": "1",
}


class MappingProcess:
    """Runs `xpurt.bench.auto.worker`."""

    def __init__(self, mapping: str, delay_us: int = 0) -> None:
        variables = {
            **os.environ,
            **ONE_CORE,
            "XPURT_MAPPING": mapping,
            "XPURT_VIRTUAL_GPU_DELAY_US": str(delay_us),
        }
        if config().virtual_gpu == "off" and not _has_gpu():
            variables["XPURT_VIRTUAL_GPU"] = "strict"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "xpurt.bench.auto.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=variables,
        )
        self._answer()

    def seconds(self, case: AutoCase, calls: int) -> float:
        """The time of this many calls; processor time if the case's limit is one of
        processor time. Raises RuntimeError if the process ended."""
        wall, processor = map(float, self._answer(f"{case.name}\t{calls}").split())
        return processor if case.limit.added_ns else wall

    def op_report(self) -> str:
        """The text of `xpurt.op_report()`, of the ops since the last call of this."""
        text: str = json.loads(self._answer("report"))
        return text

    def _answer(self, request: str = "") -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if request:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the suite ended: {self.process.wait()}")
        return line

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)


def _has_gpu() -> bool:
    return any(device.kind == "gpu" for device in xpurt.physical_devices())


@contextmanager
def mapping_processes(
    mappings: Sequence[str], delay_us: int = 0
) -> Iterator[dict[str, MappingProcess]]:
    with ExitStack() as stack:
        made = {}
        for mapping in mappings:
            made[mapping] = MappingProcess(mapping, delay_us)
            stack.callback(made[mapping].close)
        yield made
