"""Switches the virtual GPU on: a GPU for machines that have none.

The GPU itself is an OpenCL layer, a library of its own (``csrc/virtual_gpu``). The OpenCL
loader reads its settings from the environment when the first device is asked for, so they
are set before that, and child processes inherit them.

| variable | meaning |
|---|---|
| ``XPURT_VIRTUAL_GPU`` | ``strict``, ``lenient``, ``1`` (lenient); empty or ``0``: none |
| ``XPURT_VIRTUAL_GPU_DELAY_US`` | added to each kernel, in microseconds |
| ``XPURT_VIRTUAL_GPU_MEMORY`` | memory of the device in bytes |
| ``XPURT_VIRTUAL_GPU_FP64`` | ``0``: a device without doubles |
"""

import os
import re
from pathlib import Path

MODE = "XPURT_VIRTUAL_GPU"
DELAY_US = "XPURT_VIRTUAL_GPU_DELAY_US"
MEMORY_BYTES = "XPURT_VIRTUAL_GPU_MEMORY"
FP64 = "XPURT_VIRTUAL_GPU_FP64"
SETTINGS = (MODE, DELAY_US, MEMORY_BYTES, FP64)
MODES = {"": None, "0": None, "1": "lenient", "lenient": "lenient", "strict": "strict"}
LAYERS = "OPENCL_LAYERS"

# What is mapped into the process once somebody has asked for devices: SYCL's adapters
# (libsycl and libOpenCL alone are not enough), or a vendor's OpenCL driver.
_DRIVER = re.compile(
    r"/lib(ur_adapter_\w+|intelocl|igdrcl|pocl|amdocl64|nvidia-opencl|RusticlOpenCL"
    r"|MesaOpenCL)[-.\w]*\.so"
)


def library_path() -> Path:
    """The layer's library; raises RuntimeError if it was not built."""
    found = sorted(Path(__file__).parent.glob("_virtual_gpu*.so"))
    if not found:
        raise RuntimeError(
            f"the virtual GPU's library was not built: no _virtual_gpu*.so in "
            f"{Path(__file__).parent}. Install xpurt again with a C compiler (gcc)."
        )
    return found[0]


def activate(
    strict: bool = True,
    delay_us: int = 0,
    memory_bytes: int | None = None,
    *,
    fp64: bool = True,
) -> None:
    """Adds the virtual GPU to this process and its children, before the first device use.

    ``strict`` refuses what a discrete GPU would refuse, ``delay_us`` (microseconds) is
    added to each kernel, ``memory_bytes`` is the memory of the device (None: as much as
    the CPU device reports), ``fp64=False`` takes the type double away.

    Raises ValueError for numbers out of range, and RuntimeError if SYCL has already
    looked for devices in this process: it does so once.
    """
    if delay_us < 0:
        raise ValueError(f"delay_us={delay_us}: a delay is 0 or more microseconds")
    if memory_bytes is not None and memory_bytes <= 0:
        raise ValueError(
            f"memory_bytes={memory_bytes}: a device has memory; None is the CPU's"
        )
    _activate(
        {
            MODE: "strict" if strict else "lenient",
            DELAY_US: str(delay_us) if delay_us else None,
            MEMORY_BYTES: None if memory_bytes is None else str(memory_bytes),
            FP64: None if fp64 else "0",
        }
    )


def activate_from_environment() -> None:
    """Does what ``XPURT_VIRTUAL_GPU`` asks for; nothing if it is unset.

    The other variables stay as the user set them. Raises ValueError for a mode that does
    not exist or a number that is none, and RuntimeError as ``activate`` does.
    """
    wanted = {name: os.environ.get(name) for name in SETTINGS}
    mode = wanted[MODE] or ""
    if mode not in MODES:
        raise ValueError(
            f"{MODE}={mode} is unknown; use strict, lenient, 1 (lenient) or 0 (none)"
        )
    if MODES[mode] is None:
        return
    for name, unit in ((DELAY_US, "microseconds"), (MEMORY_BYTES, "bytes")):
        number = wanted[name]
        if number and not (number.isascii() and number.isdigit()):
            raise ValueError(f"{name}={number} is no whole number of {unit}")
    _activate(wanted)


def is_active() -> bool:
    """Whether SYCL sees the virtual GPU, or will see it when it looks for devices."""
    if _driver_is_loaded():
        return _layer_is_loaded()
    return _is_listed() and MODES.get(os.environ.get(MODE, "")) is not None


def _activate(wanted: dict[str, str | None]) -> None:
    library = library_path()
    if _driver_is_loaded():
        same = all(os.environ.get(name) == wanted[name] for name in SETTINGS)
        if _layer_is_loaded() and same:
            return
        raise RuntimeError(
            "the virtual GPU comes too late: SYCL has already looked for devices in this "
            f"process{' (with other settings)' if _layer_is_loaded() else ''}. Call "
            "xpurt.testing.virtual_gpu() before the first use of a device, or start "
            f"Python with {MODE}=strict."
        )
    for name, value in wanted.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if not _is_listed():
        layers = [entry for entry in os.environ.get(LAYERS, "").split(":") if entry]
        os.environ[LAYERS] = ":".join([*layers, str(library)])


def _is_listed() -> bool:
    return str(library_path()) in os.environ.get(LAYERS, "").split(":")


def _mapped_files() -> str:
    try:
        return Path("/proc/self/maps").read_text()
    except OSError:
        return ""


def _driver_is_loaded() -> bool:
    return _DRIVER.search(_mapped_files()) is not None


def _layer_is_loaded() -> bool:
    return str(library_path()) in _mapped_files()
