"""Switches the virtual GPU on: a GPU for machines that have none.

The GPU itself is an OpenCL layer, a library of its own (``virtual_gpu/layer``). The
OpenCL loader loads it, and the layer reads its settings from the environment, at the
first device query. So the settings are put into the environment before; child processes
inherit them.

| variable | meaning |
|---|---|
| ``XPURT_VIRTUAL_GPU`` | ``strict``, ``lenient``, ``1`` (lenient), ``coherent``, ``svm``; ``off`` or ``0``: none |
| ``XPURT_VIRTUAL_GPU_DELAY_US`` | added to each kernel, in microseconds |
| ``XPURT_VIRTUAL_GPU_LINK`` | of copies to and from its memory, in gigabytes per second |
| ``XPURT_VIRTUAL_GPU_MEMORY`` | memory of the device in bytes; 0: as much as the CPU |
| ``XPURT_VIRTUAL_GPU_FP64`` | ``0``: a device without doubles |
| ``XPURT_VIRTUAL_GPU_FP16`` | ``0``: a device without arithmetic in half precision |
| ``XPURT_VIRTUAL_GPU_LIMITS`` | what else it has less of, as in ``work_group=64,usm=0`` |
| ``XPURT_VIRTUAL_GPU_FAIL_AFTER`` | kernels after which it takes no more work; 0: never |
"""

import ctypes
import math
import os
from collections.abc import Mapping
from pathlib import Path

from xpurt import opencl_layer
from xpurt.arguments import check_flag, check_type
from xpurt.config import (
    VIRTUAL_GPU_LIMITS,
    VIRTUAL_GPU_LIMITS_SHOWN,
    config,
    read_config,
)


def library_path() -> Path:
    """The layer's library; raises RuntimeError if it was not built."""
    folder = Path(__file__).parent
    return opencl_layer.library_in(folder, "_virtual_gpu", "the virtual GPU's")


def activate(
    strict: bool = True,
    delay_us: int = 0,
    memory_bytes: int | None = None,
    *,
    fp64: bool = True,
    fp16: bool = True,
    limits: str = "",
    coherent: bool = False,
    svm: bool = False,
    link_gb_per_s: float | None = None,
) -> None:
    """Adds the virtual GPU to this process and its children, before the first device
    use.

    ``strict`` refuses what a discrete GPU would refuse. ``delay_us`` (microseconds) is
    added to each kernel. ``memory_bytes`` is the memory of the device (None: as much as
    the CPU device reports). ``fp64=False`` removes the type double, and
    ``fp16=False`` arithmetic in half. ``limits`` is a list of what else it has less of:
    ``usm=0`` (no unified shared memory), ``compiler=0``, ``address_bits=32``,
    ``opencl=1.2``, ``vendor_id=4318`` (the PCI vendor), ``sub_groups=0`` or
    ``sub_groups=8+32`` (sizes in lanes), ``work_group=64`` (work-items),
    ``local_memory=16384`` (bytes), ``vector_width=1`` (floats). ``coherent`` makes it an
    integrated GPU, whose kernels use any memory of the host; it refuses nothing, whatever
    ``strict`` is. ``svm`` makes it a GPU without unified shared memory, which SYCL can use
    only with ``xpurt.usm_on_svm``; it is strict, whatever ``strict`` is. ``link_gb_per_s``
    is the rate in gigabytes per second that copies between its memory and the host's
    have at most (None: as fast as the CPU copies).

    Raises ValueError for numbers out of range, and for ``coherent`` with ``svm``.
    Raises RuntimeError if SYCL has already queried the devices in this process, which
    it does only once.
    """
    remedy = "Give a whole number."
    check_type("virtual_gpu(delay_us=)", delay_us, int, "microseconds", remedy)
    if memory_bytes is not None:
        check_type("virtual_gpu(memory_bytes=)", memory_bytes, int, "bytes", remedy)
    flags = {
        "strict": strict,
        "fp64": fp64,
        "fp16": fp16,
        "coherent": coherent,
        "svm": svm,
    }
    for name, flag in flags.items():
        check_flag(f"virtual_gpu({name}=)", flag)
    if coherent and svm:
        raise ValueError(
            "coherent=True, svm=True: a GPU without unified shared memory does not use "
            "the host's; give one of them"
        )
    if delay_us < 0:
        raise ValueError(f"delay_us={delay_us}: a delay is 0 or more microseconds")
    if memory_bytes is not None and memory_bytes <= 0:
        raise ValueError(
            f"memory_bytes={memory_bytes}: a device has memory; None is the CPU's"
        )
    if link_gb_per_s is not None:
        check_type(
            "virtual_gpu(link_gb_per_s=)",
            link_gb_per_s,
            int | float,
            "gigabytes per second",
            "Give a number.",
        )
        if not 0 < link_gb_per_s < math.inf:
            raise ValueError(
                f"link_gb_per_s={link_gb_per_s}: a link copies more than 0 bytes"
            )
    check_type(
        "virtual_gpu(limits=)",
        limits,
        str,
        "a list",
        f"It is {VIRTUAL_GPU_LIMITS_SHOWN}.",
    )
    if limits and not VIRTUAL_GPU_LIMITS.fullmatch(limits):
        raise ValueError(
            f'limits="{limits}" is not possible. It is {VIRTUAL_GPU_LIMITS_SHOWN}.'
        )
    modes = {"coherent": coherent, "svm": svm, "strict": strict, "lenient": True}
    wanted = {
        "XPURT_VIRTUAL_GPU": next(mode for mode, is_on in modes.items() if is_on),
        "XPURT_VIRTUAL_GPU_DELAY_US": str(delay_us),
        "XPURT_VIRTUAL_GPU_LINK": "" if link_gb_per_s is None else str(link_gb_per_s),
        "XPURT_VIRTUAL_GPU_MEMORY": str(memory_bytes or 0),
        "XPURT_VIRTUAL_GPU_FP64": "1" if fp64 else "0",
        "XPURT_VIRTUAL_GPU_FP16": "1" if fp16 else "0",
        "XPURT_VIRTUAL_GPU_LIMITS": limits,
    }
    library = library_path()
    if opencl_layer.driver_is_loaded():
        if opencl_layer.is_loaded(library_path()) and _settings(
            os.environ
        ) == _settings(wanted):
            return
        raise RuntimeError(
            "the virtual GPU comes too late: SYCL has already looked for devices in this "
            f"process{' (with other settings)' if opencl_layer.is_loaded(library_path()) else ''}. Call "
            "xpurt.testing.virtual_gpu() before the first use of a device, or start "
            "Python with XPURT_VIRTUAL_GPU=strict."
        )
    os.environ.update(wanted)
    opencl_layer.add_above(library)


def activate_from_environment() -> None:
    """Activates the virtual GPU as ``XPURT_VIRTUAL_GPU`` and its settings require; does
    nothing if it is off.

    Raises ConfigError for an invalid value, and RuntimeError as ``activate`` does.
    """
    requested = config()
    if requested.virtual_gpu != "off":
        activate(
            strict=requested.virtual_gpu == "strict",
            delay_us=requested.virtual_gpu_delay_us,
            memory_bytes=requested.virtual_gpu_memory_bytes or None,
            fp64=requested.virtual_gpu_fp64,
            fp16=requested.virtual_gpu_fp16,
            limits=requested.virtual_gpu_limits,
            coherent=requested.virtual_gpu == "coherent",
            svm=requested.virtual_gpu == "svm",
            link_gb_per_s=requested.virtual_gpu_link_gb_per_s or None,
        )


def fail(fails: bool = True, *, running: bool = False) -> None:
    """Makes the virtual GPU of this process refuse all work from now on; or, with
    `running`, accept kernels and lose them. ``fail(False)`` makes it work again.

    Raises RuntimeError if there is no virtual GPU.
    """
    check_flag("fail_virtual_gpu()", fails)
    check_flag("fail_virtual_gpu(running=)", running)
    if not opencl_layer.is_loaded(library_path()):
        raise RuntimeError(
            "there is no virtual GPU that could fail: SYCL has not looked for devices "
            "yet, or XPURT_VIRTUAL_GPU is off"
        )
    how = 0 if not fails else 2 if running else 1  # the states in layer/failure.c
    ctypes.CDLL(str(library_path())).xpurt_virtual_gpu_fail(ctypes.c_int(how))


def delay(delay_us: int) -> None:
    """Sets the time that is added to each kernel of this process from now on.

    Raises ValueError for a negative number, and RuntimeError if there is no virtual
    GPU.
    """
    check_type(
        "delay_virtual_gpu()", delay_us, int, "microseconds", "Give a whole number."
    )
    if delay_us < 0:
        raise ValueError(f"delay_us={delay_us}: a delay is 0 or more microseconds")
    if not opencl_layer.is_loaded(library_path()):
        raise RuntimeError(
            "there is no virtual GPU that could be slow: SYCL has not looked for devices "
            "yet, or XPURT_VIRTUAL_GPU is off"
        )
    ctypes.CDLL(str(library_path())).xpurt_virtual_gpu_delay(ctypes.c_uint64(delay_us))


def is_active() -> bool:
    """True if SYCL has the virtual GPU, or will have it after its device query."""
    there = (
        opencl_layer.is_loaded(library_path())
        if opencl_layer.driver_is_loaded()
        else opencl_layer.is_listed(library_path())
    )
    return there and _settings(os.environ)[0] != "off"


def _settings(environment: Mapping[str, str]) -> tuple[object, ...]:
    """The settings that the layer reads from an environment. `config()` is older than
    the settings that `activate` writes there."""
    found = read_config(environment)
    return (
        found.virtual_gpu,
        found.virtual_gpu_delay_us,
        found.virtual_gpu_link_gb_per_s,
        found.virtual_gpu_memory_bytes,
        found.virtual_gpu_fp64,
        found.virtual_gpu_fp16,
        found.virtual_gpu_limits,
    )
