"""Checks that PyTorch works on xpu as on the CPU: PyTorch's own databases of ops,
modules and optimizers are run on both, and the results compared."""

from xpurt_tools.conformance import gpu_types
from xpurt_tools.conformance.command import run_conformance
from xpurt_tools.conformance.known import BadFile
from xpurt_tools.conformance.pairs import DTYPES
from xpurt_tools.conformance.pool import WorkersFailed
from xpurt_tools.conformance.settings import (
    KNOWN_FAILURES_COMPILED,
    KNOWN_FAILURES_SWEEPS,
    MODELS,
    PACKAGED_KNOWN_FAILURES,
    Settings,
    known_failures_of,
)
from xpurt_tools.conformance.sweeps import SWEEPS

ALL_DTYPES = tuple(dict.fromkeys((*DTYPES, *gpu_types.DTYPES)))

__all__ = [
    "ALL_DTYPES",
    "DTYPES",
    "KNOWN_FAILURES_COMPILED",
    "KNOWN_FAILURES_SWEEPS",
    "MODELS",
    "PACKAGED_KNOWN_FAILURES",
    "SWEEPS",
    "BadFile",
    "Settings",
    "WorkersFailed",
    "known_failures_of",
    "run_conformance",
]
