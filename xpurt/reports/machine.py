"""The machine on which the numbers of a page were measured."""

import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from xpurt.kernels import get_kernel_policy
from xpurt.mapping import PhysicalDevice, current_placement, get_xpu_mapping

IDLE_LOAD = 0.5  # per core


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine, the software and the settings of a run.

    cores: those on which this process may run. threads: those of PyTorch's CPU kernels.
    devices: the devices behind xpu, each with its driver. date: in UTC, without the
    time. load: the system's load average over the minute before the run.
    """

    processor: str
    cores: int
    threads: int
    devices: tuple[str, ...]
    mapping: str
    policy: str
    torch: str
    xpurt: str
    dpctl: str
    onednn: str
    python: str
    system: str
    date: str
    load: float

    @property
    def busy(self) -> str:
        """A warning if other programs use the cores; else empty.

        PyTorch's CPU kernels suffer most: their threads wait for each other, and so for
        the one that waits for a core.
        """
        if self.load <= self.cores * IDLE_LOAD:
            return ""
        return (
            f"the machine was busy (load {self.load:.1f} on {self.cores} cores): "
            "ratios of such a run say little"
        )

    @property
    def sentence(self) -> str:
        behind = "; ".join(self.devices)
        return (
            f"{self.processor}, {self.cores} cores, {self.threads} threads in PyTorch's "
            f"CPU kernels; PyTorch {self.torch}, xpurt {self.xpurt}, Python "
            f"{self.python}, {self.system}; mapping {self.mapping}, kernel policy "
            f"{self.policy}; behind xpu: {behind}"
        )


def describe_machine(
    devices: Iterable[PhysicalDevice] | None = None,
    *,
    mapping: str | None = None,
    policy: str | None = None,
) -> Machine:
    """This machine with the devices, the mapping and the kernel policy of a run.

    Defaults are those in force in this process. Raises MappingError if the mapping in
    force finds no device.
    """
    if devices is None:
        devices = [d for ordinal in current_placement().ordinals for d in ordinal]
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        threads=torch.get_num_threads(),
        devices=tuple(
            f"{device.name} ({device.backend}, driver {device.driver_version})"
            for device in devices
        ),
        mapping=get_xpu_mapping() if mapping is None else mapping,
        policy=get_kernel_policy() if policy is None else policy,
        torch=torch.__version__,
        xpurt=_version("xpurt"),
        dpctl=_version("dpctl"),
        onednn=_version("onednn"),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()}",
        date=datetime.now(UTC).date().isoformat(),
        load=os.getloadavg()[0],
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The processor's name, as the system reports it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
