"""The settings of a run of the conformance command."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PACKAGED_KNOWN_FAILURES = Path(__file__).with_name("known_failures.txt")
KNOWN_FAILURES_COMPILED = Path(__file__).with_name("known_failures_compiled.txt")
KNOWN_FAILURES_SWEEPS = Path(__file__).with_name("known_failures_sweeps.txt")
MODELS = "xpurt_tools.conformance.models:of_packages"  # a database
KNOWN_FAILURES_THROUGH = Path(__file__).with_name("known_failures_through.txt")


@dataclass(frozen=True, slots=True)
class Settings:
    """One run, under one mapping.

    mapping: as `set_xpu_mapping` takes it.
    policy: "auto", "sycl" or "native", as `set_kernel_policy` takes it.
    virtual_gpu: "strict", "lenient", "coherent", "svm" or "off", as `XPURT_VIRTUAL_GPU`.
    dtypes: names, as in "float32".
    ops: shell patterns for names of ops; a pair is run if one of them matches.
    sample: one in this many pairs is run, and at least one of each op, unless it is
        compiled or goes through a layer; 1 runs all.
    samples_per_pair: the largest number of PyTorch's samples that are run per pair,
        spread evenly; None runs all.
    jobs: the number of worker processes.
    timeout_s: for one pair; its worker is ended then.
    gpu_types: whether pairs with types that only GPUs have are run: together with those
        of the CPU, alone, or not at all.
    database: the function that returns the databases, "module:function".
    known_failures: the path of their file.
    compiled: ops alone are run, by torch.compile on the device.
    device: "xpu", "lazy", or the type of a prototype device, as "ipu".
    sweep: a name of `xpurt_tools.conformance.sweeps`, whose pairs are run instead of those of
        the databases.
    through: a name of LAYERS: what it is for is run through this layer, and compared with
        eager mode on the same device.
    """

    mapping: str = "CPU"
    policy: str = "auto"
    virtual_gpu: str = "off"
    dtypes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ("*",)
    sample: int = 1
    samples_per_pair: int | None = None
    jobs: int = 1
    timeout_s: float = 300.0
    gpu_types: Literal["also", "only", "not"] = "also"
    database: str = "xpurt_tools.conformance.databases:of_pytorch"
    known_failures: Path = PACKAGED_KNOWN_FAILURES
    compiled: bool = False
    device: str = "xpu"
    sweep: str | None = None
    through: str | None = None

    @property
    def label(self) -> str:
        """The run's name in tables and in the file of known failures: "CPU",
        "AUTO+sycl", "GPU+compiled", "CPU+lazy", "CPU+shapes", "CPU+optimize"."""
        policy = "" if self.policy == "auto" else f"+{self.policy}"
        device = "" if self.device == "xpu" else f"+{self.device}"
        compiled = "+compiled" if self.compiled else ""
        sweep = f"+{self.sweep}" if self.sweep else ""
        through = f"+{self.through}" if self.through else ""
        return self.mapping + policy + device + compiled + sweep + through


def known_failures_of(sweep: str | None, compiled: bool, through: str | None) -> Path:
    """The packaged file for such a run."""
    if through is not None:
        return KNOWN_FAILURES_THROUGH
    if sweep is not None:
        return KNOWN_FAILURES_SWEEPS
    return KNOWN_FAILURES_COMPILED if compiled else PACKAGED_KNOWN_FAILURES
