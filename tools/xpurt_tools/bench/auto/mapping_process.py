"""A process that times cases under one mapping, seen from its parent.

On a machine without a GPU the virtual GPU is the second device. With
``DPCPP_CPU_NUM_CUS=1`` the CPU device and the virtual GPU have a thread each, and with
``OMP_NUM_THREADS=1`` PyTorch's own kernels have one, too.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import xpurt
from xpurt.config import config
from xpurt_tools.bench.auto.case import AutoCase
from xpurt_tools.bench.line_process import LineProcess

AUTO_MAPPING = "AUTO"  # the mapping of all devices


class MappingProcess:
    """Runs `xpurt_tools.bench.auto.worker`. Each method raises RuntimeError if it has ended."""

    def __init__(self, mapping: str, delay_us: int = 0) -> None:
        variables = {
            "XPURT_LEARN": "1",
            "XPURT_MAPPING": mapping,
            "XPURT_VIRTUAL_GPU_DELAY_US": str(delay_us),
        }
        if config().virtual_gpu == "off" and not _has_gpu():
            variables["XPURT_VIRTUAL_GPU"] = "strict"
        self._process = LineProcess("xpurt_tools.bench.auto.worker", variables)
        self._process.answer()

    def seconds(self, case: AutoCase, calls: int) -> float:
        """The time of this many calls; processor time if the case's limit is one of
        processor time."""
        self._process.send(f"{case.name}\t{calls}")
        wall, processor = map(float, self._process.answer().split())
        return processor if case.limit.added_ns else wall

    def op_report(self) -> str:
        """The text of `xpurt.op_report()`, of the ops since the last call of this."""
        self._process.send("report")
        text: str = json.loads(self._process.answer())
        return text

    def close(self) -> None:
        self._process.end()
        self._process.process.wait(timeout=60)


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
