"""`python -m xpurt doctor`: what keeps this machine from making a tensor on xpu.

Every check examines one thing and returns findings. No check raises, and none depends
on another, so that all faults of an installation are found at once. For this reason,
modules that may be broken are imported inside of the checks.
"""

import ctypes
import grp
import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from xpurt.torch_versions import PYTHONS, listed, series_of

RENDER_NODES = Path("/dev/dri")
INTEL_VENDOR_ID = "0x8086"
IMPORT_IT = "a program has to import xpurt"
PUT_RIGHT = "put right what this names"


@dataclass(frozen=True)
class Finding:
    """One line of the doctor.

    advice: the remedy; None means that nothing has to be done.
    is_note: it limits what can be used, and nothing has to be done.
    """

    subject: str
    found: str
    advice: str | None = None
    is_note: bool = False

    @property
    def ok(self) -> bool:
        return self.advice is None

    def __str__(self) -> str:
        mark = "FAIL" if not self.ok else "note" if self.is_note else "ok  "
        line = f"{mark}  {self.subject:<11}  {self.found}"
        return line if self.ok else f"{line}\n      {'':<11}  -> {self.advice}"


def diagnose() -> list[Finding]:
    """Runs every check, in the order in which a first tensor needs things."""
    findings: list[Finding] = []
    for subject, check in CHECKS.items():
        try:
            findings += check()
        except Exception as error:  # an error of a check is a finding, too
            reason = f"{type(error).__name__}: {error}"
            findings.append(Finding(subject, reason, PUT_RIGHT))
    return findings


def check_python() -> Iterator[Finding]:
    found = f"{platform.python_version()} on {platform.platform()}"
    fits = "{}.{}".format(*sys.version_info) in PYTHONS
    advice = None if fits else f"use Python {listed(PYTHONS, 'or')}"
    yield Finding("python", found, advice)
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        yield Finding(
            "python",
            f"{sys.platform} on {platform.machine()}",
            "xpurt runs on Linux on x86-64 only",
        )


def check_wheel() -> Iterator[Finding]:
    from xpurt import _built_for

    series = series_of(_built_for.TORCH)
    advice = f'pip install "torch=={series}.*"'
    try:
        found = version("torch")
    except PackageNotFoundError:
        yield Finding("torch", "not installed", advice)
        return
    yield Finding("torch", found, None if series_of(found) == series else advice)


def check_extension() -> Iterator[Finding]:
    from xpurt import _C
    from xpurt.startup import extension

    inactive = extension.inactive_reason()
    if inactive is None:
        yield Finding("extension", str(_C.__file__))
    else:
        yield Finding("extension", f"not loaded: {inactive}", PUT_RIGHT)


def check_loader() -> Iterator[Finding]:
    from xpurt.startup import driver

    directory = driver.library_directory()
    if directory is None:
        yield Finding(
            "loader",
            "the SYCL runtime's libraries are not beside dpctl",
            'pip install --force-reinstall "dpctl>=0.22.1,<0.23"',
        )
        return
    missing = driver.load_libraries()
    if missing:
        yield Finding(
            "loader",
            f"{directory} lacks {', '.join(missing)}, or they do not load",
            "pip install --force-reinstall intel-sycl-rt onednn intel-opencl-rt",
        )
    else:
        yield Finding("loader", f"SYCL, OpenCL and oneDNN from {directory}")


def check_drivers() -> Iterator[Finding]:
    """The OpenCL drivers (ICDs) that the loader is going to load."""
    from xpurt.startup import driver

    driver.prepare()
    drivers = list(driver.listed_drivers(os.environ, driver.SYSTEM_ICD_DIRECTORY))
    for source, library in drivers:
        try:
            ctypes.CDLL(library)
        except OSError as error:
            yield Finding(
                "driver",
                f"{library} ({source}) does not load: {error}",
                f"install what is missing, or take it out of {source}",
            )
        else:
            yield Finding("driver", f"{library} ({source})")
    if not drivers:
        yield Finding(
            "driver", "no OpenCL driver", 'pip install "intel-opencl-rt>=2026.2"'
        )


def check_permissions() -> Iterator[Finding]:
    nodes = sorted(RENDER_NODES.glob("renderD*"))
    if not nodes:
        yield Finding("permissions", f"no GPU node in {RENDER_NODES}: no GPU here")
    for node in nodes:
        if os.access(node, os.R_OK | os.W_OK):
            yield Finding("permissions", f"{node} can be read and written")
        else:
            group = group_name(node.stat().st_gid)
            yield Finding(
                "permissions",
                f"{node} belongs to the group {group}, and you can't open it",
                f"sudo usermod -a -G {group} $USER, then log in again",
            )


def group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def check_devices() -> Iterator[Finding]:
    from xpurt.mapping import physical_devices, remarks, unusable_devices

    devices = physical_devices()
    for device in devices:
        yield Finding("device", f"{device.filter_string}  {device.name}")
        for remark in remarks(device):
            yield Finding("device", f"{device.filter_string}  {remark}", is_note=True)
    for each in unusable_devices():
        yield Finding("device", f"{each} can't be used: {each.reason}", is_note=True)
    if not devices:
        found = "SYCL lists no device" + " that can be used" * bool(unusable_devices())
        yield Finding("device", found, "see the driver and device lines above")
    if not any(device.kind == "gpu" for device in devices):
        yield from missing_gpus(Path("/sys/class/drm"))


def missing_gpus(drm: Path) -> Iterator[Finding]:
    """Intel GPUs in the Linux kernel's list; called if SYCL lists no GPU."""
    for vendor in sorted(drm.glob("renderD*/device/vendor")):
        if vendor.read_text().strip() == INTEL_VENDOR_ID:
            yield Finding(
                "device",
                f"{vendor.parts[-3]} is an Intel GPU, but SYCL lists no GPU",
                "install its OpenCL driver (Debian, Ubuntu: apt install "
                "intel-opencl-icd)",
            )


def check_accelerator() -> Iterator[Finding]:
    """The device that PyTorch takes if a program names none. Activates xpu afterwards,
    so that the next checks examine xpu on a machine with a CUDA GPU, too."""
    from xpurt.startup import accelerator, extension

    if extension.inactive_reason() is not None:
        return  # the extension's finding reports it
    if accelerator.is_active():
        yield Finding("accelerator", "xpu")
    else:
        found = "CUDA has a GPU here and stays it until a program sets an xpu mapping"
        yield Finding("accelerator", found)
        accelerator.activate(asked=True)


def check_mapping() -> Iterator[Finding]:
    import torch

    import xpurt

    count = torch.xpu.device_count()
    yield Finding(
        "mapping",
        f"{xpurt.get_xpu_mapping()}, {count} ordinal{'s'[: count != 1]}",
        None if count else "see the driver and device lines above",
    )


def check_launch() -> Iterator[Finding]:
    """What the ranks of a torchrun with two processes would get here."""
    from xpurt.mapping import physical_devices, placement_for_rank
    from xpurt.startup.launch import LocalRank, processors_of, usable_nodes

    for rank in (LocalRank(0, 2), LocalRank(1, 2)) if physical_devices() else ():
        processors = ", ".join(map(str, processors_of(rank, usable_nodes())))
        ordinals = placement_for_rank(rank).ordinals
        parts = dict.fromkeys(each.filter_string for some in ordinals for each in some)
        yield Finding(
            "torchrun",
            f"rank {rank.number} of {rank.count} would get {', '.join(parts)}, and "
            f"processors {processors}",
        )


def check_first_op() -> Iterator[Finding]:
    import torch

    total = (torch.ones(1000, device="xpu") * 2).sum().item()
    advice = None if total == 2000 else "please report this with the lines above"
    yield Finding("first op", f"sum of 1,000 twos on xpu: {total:g}", advice)


def check_switches() -> Iterator[Finding]:
    """Whether xpurt is loaded automatically, or by an import; neither is a fault."""
    from xpurt.config import config

    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") != "1":
        yield Finding("autoload", f"off by TORCH_DEVICE_BACKEND_AUTOLOAD: {IMPORT_IT}")
    elif not config().autoload:
        yield Finding("autoload", f"off by XPURT_AUTOLOAD: {IMPORT_IT}")
    else:
        import xpurt_autoload

        failed = xpurt_autoload.failure
        advice = "see the extension line above" if failed else None
        yield Finding("autoload", failed or "on: import torch is enough", advice)


CHECKS: dict[str, Callable[[], Iterator[Finding]]] = {
    "python": check_python,
    "torch": check_wheel,
    "loader": check_loader,
    "extension": check_extension,
    "autoload": check_switches,
    "driver": check_drivers,
    "permissions": check_permissions,
    "device": check_devices,
    "accelerator": check_accelerator,
    "mapping": check_mapping,
    "torchrun": check_launch,
    "first op": check_first_op,
}
