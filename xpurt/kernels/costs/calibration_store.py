"""Where costs come from: the shipped tables, and the calibration of this machine, which
is kept beside the kernels in one file per device and number of threads.

Note [Shipped tables]
~~~~~~~~~~~~~~~~~~~~~
There is a table per instruction set, of one machine each, since PyTorch's kernels and
oneDNN's have code per instruction set: PyTorch's kernel multiplies bfloat16 matrices
with 900 GFLOP/s on two cores with AMX, and with 2 on two with AVX2. The set is the one
that PyTorch uses; AMX is beside AVX-512. A processor without any of the three has the
table of AVX2.
"""

import hashlib
import warnings
from functools import cache
from pathlib import Path

import torch

from xpurt import _C
from xpurt.config import config
from xpurt.kernels.cache.disk_cache import processor
from xpurt.kernels.cache.private_file import read_private, write_private
from xpurt.kernels.costs.curves import (
    BadCosts,
    Calibration,
    Curve,
    Identity,
    Rates,
    from_text,
    merged,
    to_text,
)

# By the instruction set.
SHIPPED = {
    name: Path(__file__).with_name(f"shipped_{name.lower()}.json")
    for name in ("AVX2", "AVX512", "AMX")
}

_warned: set[Path] = set()  # files that a warning has named


def identity_of(
    device: str, platform: str, driver: str, compute_units: int
) -> Identity:
    """The properties of a device and of this process on which measurements depend."""
    return Identity(
        device=device,
        platform=platform,
        driver=driver,
        compute_units=compute_units,
        processor=hashlib.sha256(processor()).hexdigest()[:16],
        torch=str(torch.__version__),
        threads=torch.get_num_threads(),
    )


@cache
def shipped(instructions: str | None = None) -> Calibration:
    """The costs that come with xpurt for an instruction set of `SHIPPED`, by default for
    this processor's, of the machine that the file names. See Note [Shipped tables]."""
    return from_text(SHIPPED[instructions or _instructions()].read_text())


def _instructions() -> str:
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return "AVX2"
    return "AMX" if torch.cpu.get_capabilities().get("amx_bf16") else "AVX512"


def calibration_path(identity: Identity) -> Path:
    """The file for a device. The driver's version is no part of its name."""
    names = (identity.device, identity.platform, identity.processor)
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]
    # Partitions of a device have the device's name.
    units, threads = identity.compute_units, identity.threads
    return config().cache_folder / f"costs-{digest}-{units}-{threads}.json"


def kept_calibration(identity: Identity) -> Calibration | None:
    """The kept calibration of the device. None if there is none, or if the file can't
    be used; in that case a warning gives the reason, once per file."""
    path = calibration_path(identity)
    try:
        found = from_text(read_private(path).decode())
        _check_same(found.identity, identity)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _warn(path, error)
        return None
    return found


def keep_calibration(calibration: Calibration) -> Path:
    """Writes the file, and returns its path. Raises OSError."""
    path = calibration_path(calibration.identity)
    write_private(path, to_text(calibration).encode())
    return path


def known_costs(
    identity: Identity, kind: str
) -> tuple[Calibration | None, tuple[Curve, ...]]:
    """The calibration of a device of the `kind`, if there is one, and the cost curves
    that apply: shipped ones, replaced by those of the calibration."""
    # The shipped tables have CPUs alone.
    curves: tuple[Curve, ...] = shipped().curves if kind == "cpu" else ()
    kept = kept_calibration(identity)
    if kept is not None:
        curves = merged(curves, kept.curves)
    return kept, curves


def apply_costs(
    index: int, position: int, identity: Identity, kind: str
) -> Rates | None:
    """Passes the costs of a device of xpu:`index` to the extension. Returns the rates
    that were measured on it; None if it was never calibrated."""
    kept, curves = known_costs(identity, kind)
    _C.set_cost_curves(index, position, [curve.described() for curve in curves])
    return kept.rates if kept is not None else None


def _check_same(found: Identity, wanted: Identity) -> None:
    for name, what in (
        ("device", "device"),
        ("platform", "platform"),
        ("driver", "driver"),
        ("torch", "PyTorch"),
        ("processor", "processor"),
        ("compute_units", "number of compute units"),
        ("threads", "number of threads"),
    ):
        old, new = getattr(found, name), getattr(wanted, name)
        if old != new:
            raise BadCosts(f"it is of another {what}: {old}, here it is {new}")


def _warn(path: Path, error: Exception) -> None:
    if path in _warned:
        return
    _warned.add(path)
    warnings.warn(
        f"the calibration {path} is not used: {error}. xpurt goes by the costs that it "
        "comes with; `python -m xpurt calibrate` measures anew.",
        stacklevel=2,
    )
