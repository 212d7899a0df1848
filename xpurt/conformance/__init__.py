"""Whatever PyTorch does on the CPU, it has to do on xpu: PyTorch's own databases of ops,
modules and optimizers, run on both and compared."""

from xpurt.conformance.command import run_conformance
from xpurt.conformance.known import BadFile
from xpurt.conformance.pairs import DTYPES
from xpurt.conformance.pool import WorkersFailed
from xpurt.conformance.settings import Settings

__all__ = [
    "DTYPES",
    "BadFile",
    "Settings",
    "WorkersFailed",
    "run_conformance",
]
