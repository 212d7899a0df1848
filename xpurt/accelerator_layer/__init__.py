"""Switches the accelerators on: OpenCL devices that SYCL does not list by itself.

SYCL lists CPUs and GPUs. OpenCL has a third type, which FPGAs and their emulation have.
An OpenCL layer (``accelerator_layer/layer``) makes SYCL take such a device for a GPU;
xpurt keeps it an accelerator.

It is on if ``XPURT_ACCELERATORS`` is. By default it is on if one of the listed OpenCL
drivers may have accelerators. That is known from the drivers' names: none is loaded. The
OpenCL loader loads the layer at the first device query, and child processes inherit it.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from xpurt import opencl_layer
from xpurt.config import config, read_config

VARIABLE = "XPURT_ACCELERATORS"

# The beginnings of the names of drivers that have CPUs and GPUs only. Another driver may
# have accelerators; if it has none, the layer changes nothing.
WITHOUT_ACCELERATORS = (
    "libintelocl.so",
    "libigdrcl",
    "libnvidia-opencl",
    "libamdocl",
    "libRusticlOpenCL",
    "libMesaOpenCL",
)


def library_path() -> Path:
    """The layer's library; raises RuntimeError if it was not built."""
    folder = Path(__file__).parent
    what = "the accelerator layer's"
    return opencl_layer.library_in(folder, "_accelerator_layer", what)


def activate() -> None:
    """Adds the layer to this process and its children, before the first device use.

    It is above the layers that are listed now. Raises RuntimeError if SYCL has already
    queried the devices in this process, which it does only once.
    """
    library = library_path()
    if opencl_layer.driver_is_loaded():
        if opencl_layer.is_loaded(library) and _mode() != "off":
            return
        raise RuntimeError(
            "the accelerator layer comes too late: SYCL has already looked for devices "
            f"in this process. Start Python with {VARIABLE}=on."
        )
    opencl_layer.add_above(library)


def activate_from_environment(drivers: Iterable[str]) -> None:
    """Activates the layer as ``XPURT_ACCELERATORS`` requires. By default it does so if
    one of the drivers may have accelerators, and it is not too late.

    drivers: the libraries of the OpenCL drivers, as they are listed.

    Raises ConfigError for an invalid value. Only where the value is "on" it raises
    RuntimeError as ``activate`` does.
    """
    mode = config().accelerators
    by_itself = mode == "auto" and not opencl_layer.driver_is_loaded()
    if mode == "on" or (by_itself and any(map(_may_have_accelerators, drivers))):
        activate()


def way_out() -> str:
    """What a user can do about an accelerator that SYCL does not list."""
    if _mode() == "off":
        return f"{VARIABLE}=off hides it: unset the variable"
    if opencl_layer.is_loaded(library_path()):
        return "SYCL refuses it even as a GPU: update its driver"
    return f"SYCL lists no accelerators by itself: start Python with {VARIABLE}=on"


def _may_have_accelerators(driver: str) -> bool:
    return not Path(driver).name.startswith(WITHOUT_ACCELERATORS)


def _mode() -> str:
    """As the layer reads the environment, which may be newer than `config()`."""
    return read_config(os.environ).accelerators
